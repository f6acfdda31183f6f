import type { BaseChain } from '../../kernel/nft/objects.ts';
import type { Protocol } from '../../model/objects.ts';
import {
  changeMark,
  dispatchTo,
  hasMark,
  isDnat,
  isNew,
  lookup,
  masquerade,
  Packet,
  type RuleBody,
  verdict,
} from './expressions.ts';
import type { NftablesSettings } from './settings.ts';

/** A chain and all its rules. */
export interface ChainBody {
  readonly name: string;
  readonly base?: BaseChain;
  readonly rules: readonly RuleBody[];
}

/** Where frontends that nobody serves send their packets. */
export const rejectChain = 'reject-packet';

/** Counts and rejects packets of one protocol to node ports on loopback addresses. */
export function loopbackChain(protocol: Protocol): string {
  return `loopback-${protocol.toLowerCase()}`;
}

/** Named counter that the chain of the same protocol counts in. */
export function loopbackCounter(protocol: Protocol): string {
  return `loopback-rejected-${protocol.toLowerCase()}`;
}

export const protocols: readonly Protocol[] = ['TCP', 'UDP', 'SCTP'];

/** The chains that do not depend on services, helpers before those that use them. */
export function fixedChains(settings: NftablesSettings): ChainBody[] {
  return [...helperChains(settings), ...baseChains(settings)];
}

function helperChains(settings: NftablesSettings): ChainBody[] {
  const packet = new Packet(settings.family);
  const onNodePort = acceptedNodeAddress(settings, packet);
  return [
    { name: rejectChain, rules: [[packet.reject()]] },
    {
      name: 'dispatch',
      rules: [
        [...packet.frontend(0), dispatchTo('frontends', 0)],
        [...onNodePort, ...packet.nodePort(0), dispatchTo('nodeports', 0)],
      ],
    },
    { name: 'guard', rules: [[...packet.frontend(0), dispatchTo('guarded', 0)]] },
    { name: 'refuse', rules: [[...packet.frontend(0), dispatchTo('refused', 0)]] },
    {
      name: 'refuse-nodeports',
      rules: [[...onNodePort, ...packet.nodePort(0), dispatchTo('refused-nodeports', 0)]],
    },
    {
      name: 'refuse-undefined',
      rules: [
        [packet.daddr(0), lookup('cluster-addresses', 0), verdict('goto', rejectChain)],
        [packet.daddr(0), lookup('service-ranges', 0), verdict('drop')],
      ],
    },
    ...(settings.localhostNodePorts ? protocols.map((protocol) => rejectOnLoopback(protocol, packet)) : []),
  ];
}

/** The eight chains that are attached to hooks: upstream's names, so that either program can take over. */
function baseChains(settings: NftablesSettings): ChainBody[] {
  const mark = 1 << settings.masqueradeBit;
  const packet = new Packet(settings.family);
  const ifNew = (chain: string): RuleBody => [...isNew, verdict('jump', chain)];
  const toLoopback = [...isNew, ...packet.toLoopback(), ...packet.nodePort(0)];
  return [
    base('filter-prerouting-pre-dnat', 'filter', 'prerouting', -110, [ifNew('guard')]),
    base('filter-output-pre-dnat', 'filter', 'output', -110, [ifNew('guard')]),
    base('nat-prerouting', 'nat', 'prerouting', -100, [[verdict('jump', 'dispatch')]]),
    base('nat-output', 'nat', 'output', -100, [[verdict('jump', 'dispatch')]]),
    base('filter-input', 'filter', 'input', 0, [
      ...(settings.localhostNodePorts ? [[...toLoopback, dispatchTo('loopback-nodeports', 0)]] : []),
      ifNew('refuse-nodeports'),
      ifNew('refuse'),
    ]),
    base('filter-forward', 'filter', 'forward', 0, [ifNew('refuse'), ifNew('refuse-undefined')]),
    base('filter-output', 'filter', 'output', 0, [ifNew('refuse'), ifNew('refuse-undefined')]),
    base('nat-postrouting', 'nat', 'postrouting', 100, [
      // An encapsulated packet comes by again in the same buffer: without the bit it is left alone then.
      [...hasMark(mark), ...changeMark(mark, false), masquerade],
      hairpin(packet),
    ]),
  ];
}

function base(
  name: string,
  type: BaseChain['type'],
  hook: BaseChain['hook'],
  priority: number,
  rules: readonly RuleBody[],
): ChainBody {
  return { name, base: { type, hook, priority }, rules };
}

/** A pod that was sent back to itself must see another source than its own address, or it drops the reply. */
function hairpin(packet: Packet): RuleBody {
  const words = packet.addressWords;
  return [...isDnat, packet.saddr(0), ...packet.frontend(words), lookup('hairpins', 0), masquerade];
}

function acceptedNodeAddress(settings: NftablesSettings, packet: Packet): RuleBody {
  if (!settings.nodePortAddresses.matchAll) return [packet.daddr(0), lookup('node-addresses', 0)];
  return [...packet.toLoopback(true), ...packet.isNodeAddress('daddr')];
}

function rejectOnLoopback(protocol: Protocol, packet: Packet): ChainBody {
  return {
    name: loopbackChain(protocol),
    rules: [[{ kind: 'objref', type: 'counter', name: loopbackCounter(protocol) }, packet.reject()]],
  };
}
