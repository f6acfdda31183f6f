import type { Expr } from '../../kernel/nft/expr.ts';
import { word } from '../../kernel/nft/fields.ts';
import type { EndpointList } from '../../plan/service-plan.ts';
import type { PacketFields, RuleBody } from '../nft-fields.ts';
import { clearPriority, loadPriority, lookup, setPriority } from './expressions.ts';

/**
 * Client affinity. nft cannot look one map up with what another gave (its lister fails on such a rule), so the
 * steps hand their result on in the packet's priority, which is a number `service:member` here, and zero again
 * before the packet leaves the chain. Member numbers are never given out twice in a row, so a record dies with its
 * endpoint without anybody searching for it: no member has its number any more.
 *
 * In the key of a record the second half names the list that the client was served from: a client may have one
 * record per list, and either serves the other as long as its member is in both.
 */
const listNumber: Readonly<Record<EndpointList, number>> = { cluster: 0, local: 1 };

/** Member numbers start behind the list numbers, so that one is never taken for the other. */
export const firstMember = 2;
export const lastMember = 0xffff;

const serviceMask = 0xffff0000;

interface StickyDraw {
  readonly list: EndpointList;
  readonly count: number;
  readonly affinitySeconds: number;
}

/** The number that stands for a service, or with `list` for the records and slots of one of its lists. */
export function serviceNumber(service: number, list: EndpointList = 'cluster'): number {
  return ((service << 16) | listNumber[list]) >>> 0;
}

export function memberNumber(service: number, member: number): number {
  return ((service << 16) | member) >>> 0;
}

export function stickyRules(draw: StickyDraw, packet: PacketFields): RuleBody[] {
  const other = draw.list === 'cluster' ? 'local' : 'cluster';
  const recall = (list: EndpointList): RuleBody => [
    ...listKey(list),
    packet.saddr(1),
    lookup('clients', 0, 0),
    setPriority,
  ];
  return [
    // A frontend address hit is final and a node port is no frontend: the second, when it matches, is right.
    [...packet.nodePort(0), lookup('sticky-nodeports', 0, 0), setPriority],
    [...packet.frontend(0), lookup('sticky-services', 0, 0), setPriority],
    recall(draw.list),
    forward(draw, draw.list, packet),
    recall(other),
    forward(draw, other, packet),
    [...listKey(draw.list), setPriority],
    // What is there now names an endpoint that is gone: an update would restart its timer, not replace it.
    [loadPriority(0), packet.saddr(1), loadPriority(1 + packet.addressWords), record('delete', packet)],
    pickMember(draw.count),
    // As without affinity: slot 0 for a packet that met a commit. A member number is no key of this map.
    ...(draw.count > 1 ? [pickMember(1)] : []),
    forward(draw, draw.list, packet),
    // No room for another record: forwarded all the same.
    forward(draw, undefined, packet),
  ];

  function pickMember(count: number): RuleBody {
    const slot: Expr = { kind: 'numgen', type: 'random', modulus: count, dreg: 1 };
    return [loadPriority(0), slot, lookup('sticky-slots', 0, 0), setPriority];
  }
}

/** Sends the packet to the member in its priority, if that is in the list, and records or renews the choice. */
function forward(draw: StickyDraw, recordFor: EndpointList | undefined, packet: PacketFields): RuleBody {
  const target = packet.addressWords + 2;
  const remember = recordFor
    ? [
        ...listKey(recordFor),
        packet.saddr(1),
        loadPriority(1 + packet.addressWords),
        record('update', packet, draw.affinitySeconds),
      ]
    : [];
  return [
    loadPriority(0),
    lookup(draw.list === 'cluster' ? 'sticky-members' : 'sticky-local-members', 0, target),
    ...remember,
    ...clearPriority,
    packet.dnat(target),
  ];
}

/** The key of the client's record: key in registers 0 and on, member behind it. */
function record(op: 'update' | 'delete', packet: PacketFields, seconds = 0): Expr {
  const data = 1 + packet.addressWords;
  const base = { kind: 'dynset', op, set: 'clients', key: 0, data } as const;
  return seconds > 0 ? { ...base, timeoutMs: seconds * 1000 } : base;
}

/** The service of the packet's priority with the number of a list, in register 0. */
function listKey(list: EndpointList): RuleBody {
  const xor = word(listNumber[list]);
  return [loadPriority(0), { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(serviceMask), xor }];
}
