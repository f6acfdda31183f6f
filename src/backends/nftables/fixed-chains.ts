import type { BaseChain } from '../../kernel/nft/objects.ts';
import type { Protocol } from '../../model/objects.ts';
import { isDnat, isNew, isOriginalDirection, PacketFields, type RuleBody } from '../nft-fields.ts';
import {
  changeMark,
  dispatchTo,
  hasMark,
  loadPriority,
  lookup,
  masquerade,
  setPriority,
  verdict,
} from './expressions.ts';
import type { NftablesSettings } from './settings.ts';

/** A chain and all its rules. */
export interface ChainBody {
  readonly name: string;
  readonly base?: BaseChain;
  readonly rules: readonly RuleBody[];
}

/** Rejects packets to frontends without endpoints. */
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

/**
 * The chains that do not depend on services, helpers before those that use them. `resetsDeparted`: the set `departed`
 * exists, and connections to endpoints in it get a reset.
 */
export function fixedChains(settings: NftablesSettings, resetsDeparted: boolean): ChainBody[] {
  return [...helperChains(settings), ...baseChains(settings, resetsDeparted)];
}

/** Those of them that differ with `resetsDeparted`. */
export function resettingChains(settings: NftablesSettings, resetsDeparted: boolean): ChainBody[] {
  return baseChains(settings, resetsDeparted).filter(({ name }) => resettingNames.includes(name));
}

/** What goes to an endpoint on another address of this node or elsewhere passes one of these after the rewriting. */
const resettingNames: readonly string[] = ['filter-forward', 'filter-output'];

function helperChains(settings: NftablesSettings): ChainBody[] {
  const packet = new PacketFields(settings.family);
  const onNodePort = acceptedNodeAddress(settings, packet);
  const refusedFrontend = [...packet.frontend(0), dispatchTo('refused', 0)];
  return [
    { name: rejectChain, rules: [[packet.reject()]] },
    {
      name: 'refuse-here',
      rules: [[...onNodePort, ...packet.nodePort(0), dispatchTo('refused-nodeports', 0)], refusedFrontend],
    },
    {
      name: 'refuse',
      rules: [
        refusedFrontend,
        [packet.daddr(0), lookup('cluster-addresses', 0), verdict('goto', rejectChain)],
        [packet.daddr(0), lookup('service-ranges', 0), verdict('drop')],
      ],
    },
    ...(settings.localhostNodePorts ? protocols.map((protocol) => rejectOnLoopback(protocol, packet)) : []),
  ];
}

/** The chains that are always attached to hooks: upstream's names, so that either program can take over. */
function baseChains(settings: NftablesSettings, resetsDeparted: boolean): ChainBody[] {
  const mark = 1 << settings.masqueradeBit;
  const packet = new PacketFields(settings.family);
  const ifNew = (chain: string): RuleBody => [...isNew, verdict('jump', chain)];
  const dispatch = [
    [...packet.frontend(0), ...toHandler('frontends')],
    [...acceptedNodeAddress(settings, packet), ...packet.nodePort(0), ...toHandler('nodeports')],
  ];
  const refuse = [...(resetsDeparted ? [resetRule(packet)] : []), ifNew('refuse')];
  const toLoopback = [...isNew, ...packet.toLoopback(), ...packet.nodePort(0)];
  return [
    base('nat-prerouting', 'nat', 'prerouting', -100, dispatch),
    base('nat-output', 'nat', 'output', -100, dispatch),
    base('filter-input', 'filter', 'input', 0, [
      ...(settings.localhostNodePorts ? [[...toLoopback, dispatchTo('loopback-nodeports', 0)]] : []),
      ifNew('refuse-here'),
    ]),
    base('filter-forward', 'filter', 'forward', 0, refuse),
    base('filter-output', 'filter', 'output', 0, refuse),
    base('nat-postrouting', 'nat', 'postrouting', 100, [
      // An encapsulated packet comes by again in the same buffer: without the bit it is left alone then.
      [...hasMark(mark), ...changeMark(mark, false), masquerade],
      hairpin(packet),
    ]),
  ];
}

/** A chain that is attached to a hook. */
export function base(
  name: string,
  type: BaseChain['type'],
  hook: BaseChain['hook'],
  priority: number,
  rules: readonly RuleBody[],
): ChainBody {
  return { name, base: { type, hook, priority }, rules };
}

/**
 * Packets of clients on connections that were sent to an endpoint which is gone. The client's own reset passes, in case
 * somebody is still there.
 */
function resetRule(packet: PacketFields): RuleBody {
  return [
    ...isDnat,
    ...isOriginalDirection,
    ...packet.isTCP(),
    ...packet.endpoint(0),
    lookup('departed', 0),
    ...packet.isNoReset(),
    { kind: 'reject', type: 'tcp-reset', code: 0 },
  ];
}

/** A pod that was sent back to itself must see another source than its own address, or it drops the reply. */
function hairpin(packet: PacketFields): RuleBody {
  const words = packet.addressWords;
  return [...isDnat, packet.saddr(0), ...packet.frontend(words), lookup('hairpins', 0), masquerade];
}

/**
 * Sends the packet to the chain whose number a map has for it. In one rule: without a hit it must not go by the
 * priority that it came with. The number is data, so that another one does not make the kernel check all verdicts; it
 * is handed on in the packet's priority, since nft cannot list a lookup by what another one gave.
 */
function toHandler(map: 'frontends' | 'nodeports'): RuleBody {
  return [lookup(map, 0, 0), setPriority, loadPriority(0), dispatchTo('handlers', 0)];
}

function acceptedNodeAddress(settings: NftablesSettings, packet: PacketFields): RuleBody {
  if (!settings.nodePortAddresses.matchAll) return [packet.daddr(0), lookup('node-addresses', 0)];
  return [...packet.toLoopback('neq'), ...packet.isNodeAddress('daddr')];
}

function rejectOnLoopback(protocol: Protocol, packet: PacketFields): ChainBody {
  return {
    name: loopbackChain(protocol),
    rules: [[{ kind: 'objref', type: 'counter', name: loopbackCounter(protocol) }, packet.reject()]],
  };
}
