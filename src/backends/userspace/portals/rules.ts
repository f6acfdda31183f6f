import type { Expr } from '../../../kernel/nft/expr.ts';
import type { BaseChain } from '../../../kernel/nft/objects.ts';
import { parseIP } from '../../../model/ip.ts';
import { isNew, isNotDnat, PacketFields, type RuleBody } from '../../nft-fields.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { PortalSetName } from './layout.ts';
import { returnChains } from './return-rules.ts';

/** A chain and all its rules. */
export interface PortalChain {
  readonly name: string;
  readonly base?: BaseChain;
  readonly rules: readonly RuleBody[];
}

/** Rejects packets to frontends without endpoints. */
export const rejectChain = 'reject-packet';

/** All chains of the table, helpers before those that use them. They do not depend on services. */
export function portalChains(settings: UserspaceSettings): PortalChain[] {
  const packet = new PacketFields(settings.family);
  const ifNew = (chain: string): RuleBody => [...isNew, jump(chain)];
  return [
    { name: rejectChain, rules: [[packet.reject()]] },
    { name: 'guard', rules: [guardRule(packet)] },
    { name: 'dispatch', rules: dispatchRules(settings, packet) },
    { name: 'refuse', rules: [[...packet.frontend(0), verdictOf('refused')]] },
    {
      name: 'refuse-nodeports',
      rules: [[...toNodePorts(settings, packet), ...packet.nodePort(0), verdictOf('refused-nodeports')]],
    },
    {
      name: 'refuse-undefined',
      rules: [
        [packet.daddr(0), isIn('cluster-addresses'), goTo(rejectChain)],
        [packet.daddr(0), isIn('service-ranges'), { kind: 'verdict', verdict: { kind: 'drop' } }],
      ],
    },
    base('filter-prerouting', 'filter', 'prerouting', -110, [ifNew('guard')]),
    base('filter-output-first', 'filter', 'output', -110, [ifNew('guard')]),
    base('nat-prerouting', 'nat', 'prerouting', -100, [[jump('dispatch')]]),
    base('nat-output', 'nat', 'output', -100, [[jump('dispatch')]]),
    base('filter-input', 'filter', 'input', 0, [
      directRule(settings, packet),
      ifNew('refuse-nodeports'),
      ifNew('refuse'),
    ]),
    base('filter-forward', 'filter', 'forward', 0, [ifNew('refuse'), ifNew('refuse-undefined')]),
    base('filter-output', 'filter', 'output', 0, [ifNew('refuse'), ifNew('refuse-undefined')]),
    ...(settings.keepsSource ? returnChains(settings) : []),
  ];
}

/** Cluster IPs and other addresses before node ports; who is on this node before everybody else. */
function dispatchRules(settings: UserspaceSettings, packet: PacketFields): RuleBody[] {
  const { localDetector, hostIP } = settings;
  const isPod = packet.localPod(localDetector);
  const pods = isPod ? [isPod] : [];
  const nearby = [...pods, packet.isNodeAddress('saddr')];
  const toAddress = (set: PortalSetName): RuleBody => sendTo(hostIP, set, 'frontend', packet);
  const onNode = toNodePorts(settings, packet);
  const toNode = (set: PortalSetName): RuleBody => [...onNode, ...sendTo(hostIP, set, 'nodePort', packet)];
  return [
    ...pods.map((isOurs) => [...isOurs, ...toAddress('pod-portals')]),
    ...nearby.map((isNear) => [...isNear, ...toAddress('near-portals')]),
    toAddress('portals'),
    ...pods.map((isOurs) => [...isOurs, ...toNode('pod-nodeports')]),
    ...nearby.map((isNear) => [...isNear, ...toNode('near-nodeports')]),
    toNode('nodeports'),
  ];
}

/** To the proxy port that the map has for the packet. */
function sendTo(
  hostIP: string,
  set: PortalSetName,
  key: 'frontend' | 'nodePort',
  packet: PacketFields,
): RuleBody {
  const target = packet.behind(key);
  return [
    ...packet[key](0),
    { kind: 'lookup', set, sreg: 0, dreg: target + packet.addressWords },
    { kind: 'immediate', dreg: target, value: parseIP(hostIP)?.bytes ?? new Uint8Array() },
    packet.dnat(target),
  ];
}

function guardRule(packet: PacketFields): RuleBody {
  return [
    ...packet.frontend(0),
    isIn('guarded'),
    ...packet.frontend(0),
    packet.saddr(packet.behind('frontend')),
    { kind: 'lookup', set: 'sources', sreg: 0, inverse: true },
    { kind: 'verdict', verdict: { kind: 'drop' } },
  ];
}

/** Proxy ports are for captured packets only: a direct connection to one would bypass every policy. */
function directRule({ hostIP }: UserspaceSettings, packet: PacketFields): RuleBody {
  return [
    packet.daddr(0),
    { kind: 'cmp', op: 'eq', sreg: 0, value: parseIP(hostIP)?.bytes ?? new Uint8Array() },
    ...packet.nodePort(0),
    isIn('proxy-ports'),
    ...isNew,
    ...isNotDnat,
    goTo(rejectChain),
  ];
}

function toNodePorts({ nodePortAddresses }: UserspaceSettings, packet: PacketFields): RuleBody {
  return nodePortAddresses.matchAll
    ? packet.isNodeAddress('daddr')
    : [packet.daddr(0), isIn('node-addresses')];
}

function isIn(set: PortalSetName): Expr {
  return { kind: 'lookup', set, sreg: 0 };
}

function verdictOf(set: PortalSetName): Expr {
  return { kind: 'lookup', set, sreg: 0, dreg: 'verdict' };
}

function jump(chain: string): Expr {
  return { kind: 'verdict', verdict: { kind: 'jump', chain } };
}

function goTo(chain: string): Expr {
  return { kind: 'verdict', verdict: { kind: 'goto', chain } };
}

function base(
  name: string,
  type: BaseChain['type'],
  hook: BaseChain['hook'],
  priority: number,
  rules: readonly RuleBody[],
): PortalChain {
  return { name, base: { type, hook, priority }, rules };
}
