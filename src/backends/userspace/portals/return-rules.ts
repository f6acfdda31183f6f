import { clientSourceMark } from '../../../forwarder/client-source.ts';
import type { Expr } from '../../../kernel/nft/expr.ts';
import { toIP } from '../../../model/ip.ts';
import { hasBit, isReply, PacketFields, type RuleBody } from '../../nft-fields.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { PortalChain } from './rules.ts';

/** Before conntrack, and before rules of other programs that choose a zone, or change marks. */
const beforeConntrack = -310;
/** After destination NAT, which has put back what other programs' masquerading changed. */
const afterNat = -90;
/** Before other programs' filters, so that they see the packet as the endpoint sent it. */
const beforeFilters = -150;

const arriveHere = 'arrive-here';

/**
 * The way back of connections that are made from clients' addresses. Endpoints answer to the client, so the answers would
 * go there. They are rewritten to an address and a port of this node as soon as they are seen, and get their own
 * destination back just before they reach the socket, from the connection's entry in conntrack.
 *
 * Neither a mark with a route of its own nor `tproxy` would do: a bridge that both client and endpoint are on passes an
 * answer on to the client, unless its destination address has changed.
 */
export function returnChains({ family, hostIP }: UserspaceSettings): PortalChain[] {
  const packet = new PacketFields(family);
  const host: Expr = { kind: 'immediate', dreg: 2, value: toIP(hostIP).bytes };
  const toHere: RuleBody = [
    ...isReply,
    ...ofOurs,
    { kind: 'verdict', verdict: { kind: 'jump', chain: arriveHere } },
  ];
  return [
    {
      name: arriveHere,
      rules: [
        // The checksum is not updated for the port: nothing verifies it before the port is restored.
        [...returnPort(1), host, packet.setDaddr(2), setPort(1)],
        // ICMP errors carry the header of the connection, so their destination is not restored.
        [...packet.isICMP, host, packet.setDaddr(2)],
      ],
    },
    {
      name: 'return-prerouting',
      base: { type: 'filter', hook: 'prerouting', priority: afterNat },
      rules: [toHere],
    },
    {
      name: 'return-zone',
      base: { type: 'filter', hook: 'output', priority: beforeConntrack },
      rules: [zoneRule],
    },
    {
      name: 'return-output',
      // Endpoints on this node answer from here. This type of chain chooses the route again.
      base: { type: 'route', hook: 'output', priority: afterNat },
      rules: [toHere],
    },
    {
      name: 'return-input',
      base: { type: 'filter', hook: 'input', priority: beforeFilters },
      rules: [
        [
          ...isReply,
          ...ofOurs,
          ...returnPort(1),
          packet.originalSource(2),
          { kind: 'ct-original', key: 'sport', dreg: 1 },
          packet.setDaddr(2),
          setPort(1),
        ],
      ],
    },
  ];
}

/**
 * Connections that are made from clients' addresses have a zone of conntrack, of the same number as their mark. If the client
 * itself has a connection to the same endpoint at the same port, they stay two, and the later one leaves this node from
 * another port.
 */
const zone = new Uint8Array(Uint16Array.of(clientSourceMark).buffer);

const zoneRule: RuleBody = [
  ...hasBit({ kind: 'meta', key: 'mark', dreg: 0 }, clientSourceMark),
  { kind: 'immediate', dreg: 0, value: zone },
  { kind: 'ct-set', key: 'zone', sreg: 0 },
];

/** The connection was made from a client's address by this process. */
const ofOurs: RuleBody = [
  { kind: 'ct-original', key: 'zone', dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: zone },
];

/** Loads the port at which answers arrive; ends the rule for protocols other than TCP and UDP. */
function returnPort(dreg: number): RuleBody {
  return [
    { kind: 'meta', key: 'l4proto', dreg: 0 },
    { kind: 'lookup', set: 'return-ports', sreg: 0, dreg },
  ];
}

function setPort(sreg: number): Expr {
  return { kind: 'payload-set', base: 'transport', offset: 2, length: 2, sreg };
}
