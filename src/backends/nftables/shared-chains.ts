import { bitsOf } from '../../model/ip.ts';
import type { Balance } from '../../model/service-port.ts';
import { stableSlots } from '../../model/stable-table.ts';
import type { EndpointList } from '../../plan/service-plan.ts';
import { PacketFields, type RuleBody } from '../nft-fields.ts';
import { changeMark, clearPriority, drawSlot, lookup, verdict } from './expressions.ts';
import type { ChainBody } from './fixed-chains.ts';
import { guardChain, guardChains } from './guard-chains.ts';
import { numberedSets, type SetName } from './layout.ts';
import type { NftablesSettings } from './settings.ts';
import { numberedRules } from './sticky-rules.ts';

/**
 * Chains that many services share: one per distinct thing to do. The name says all about the rules, so a chain never
 * changes once it is there, and what the kernel holds need not be read to know it:
 *
 *     pick-3                     draws one of slots 0..2 of the frontend and rewrites the destination to it
 *     nodeport-3                 the same for node ports
 *     pick-local-2               draws from the second list, the endpoints on this node
 *     sticky-3-10800s            with client affinity, remembered for three hours
 *     hash-509                   by a hash of the client's address and port among the 509 slots of the service
 *     hash-client-509            the same by its address alone; both also with a second list and with affinity
 *     cluster-pick-3             as cluster IPs need it: masquerades what does not come from a local pod
 *     external-pick-3            as external addresses need it: masquerades everything
 *     split-pick-3-or-pick-local-2   external policy Local: pods and the node choose among all, others among local
 *     sources-24-16              drops what comes from no allowed source of these prefix lengths
 *     filter-output-pre-dnat     sends new connections to the chains above, on behalf of all of them (guard-chains.ts)
 */
export type SharedChainName = string;

/** How one endpoint is chosen. */
export interface Draw {
  readonly from: 'pick' | 'nodeport';
  readonly list: EndpointList;
  readonly count: number;
  /** 0: no client affinity. */
  readonly affinitySeconds: number;
  readonly balance: Balance;
}

/** More prefix lengths than this in one list are tested in a chain that tests all there are. */
const maxNamedPrefixes = 40;

const drawPattern = '(pick|nodeport|sticky|hash|hash-client)(-local)?-([0-9]+)(?:-([0-9]+)s)?';
const chainPattern = new RegExp(`^(?:(cluster|external)-)?${drawPattern}$`);
const splitPattern = new RegExp(`^split-${drawPattern}(?:-or-${drawPattern})?$`);
const handlerPattern = /^(cluster|external|split)-/;
const sourcesPattern = /^sources-(all|[0-9]+(?:-[0-9]+)*)$/;

export function drawChain(draw: Draw, masquerade: 'cluster' | 'external' | 'never'): SharedChainName {
  return masquerade === 'never' ? drawName(draw) : `${masquerade}-${drawName(draw)}`;
}

export function splitChain(all: Draw, local: Draw | undefined): SharedChainName {
  return local ? `split-${drawName(all)}-or-${drawName(local)}` : `split-${drawName(all)}`;
}

/** The chain that tests sources against the prefix lengths given. */
export function sourcesChain(prefixes: Iterable<number>): SharedChainName {
  const distinct = [...new Set(prefixes)].sort((a, b) => b - a);
  return distinct.length > maxNamedPrefixes ? 'sources-all' : `sources-${distinct.join('-')}`;
}

/** Whether a chain found in the kernel is one of these. */
export function isSharedChain(name: string): boolean {
  return [chainPattern, splitPattern, sourcesPattern].some((pattern) => pattern.test(name)) || isGuard(name);
}

/** Whether frontends name this one: the others are reached from chains and from source ranges. */
export function isHandler(name: SharedChainName): boolean {
  return handlerPattern.test(name);
}

function isGuard(name: string): boolean {
  return guardChains.includes(name);
}

/** Chains and sets that must exist with this one. */
export function sharedChainNeeds(
  name: SharedChainName,
  settings: NftablesSettings,
): { readonly chains: readonly SharedChainName[]; readonly sets: readonly SetName[] } {
  const sources = sourcePrefixes(name, settings);
  if (sources) return { chains: guardChains, sets: sources.map((prefix): SetName => `sources-${prefix}`) };
  const split = parseSplit(name);
  return { chains: split ? [split.all, split.local].flatMap((d) => (d ? drawName(d) : [])) : [], sets: [] };
}

/** Sets of numbered endpoints that the chain works with. */
export function numberedSetsOf(name: SharedChainName): readonly SetName[] {
  if (name.includes('sticky') || /-[0-9]+s(-|$)/.test(name)) return [...numberedSets, 'clients'];
  return name.includes('hash') ? numberedSets : [];
}

export function sharedChain(name: SharedChainName, settings: NftablesSettings): ChainBody {
  const packet = new PacketFields(settings.family);
  const sources = sourcePrefixes(name, settings);
  if (sources) return { name, rules: sourceRules(sources, packet) };
  const guard = guardChain(name, settings.family);
  if (guard) return guard;
  const split = parseSplit(name);
  if (split) return { name, rules: [clearPriority, ...splitRules(split, settings, packet)] };
  const match = chainPattern.exec(name);
  if (!match) throw new Error(`no shared chain is called ${name}`);
  const draw = parseDraw(match.slice(2));
  // The priority still holds this chain's number, which means nothing further on.
  const start = isHandler(name) ? [clearPriority] : [];
  return { name, rules: [...start, ...markRules(match[1], settings, packet), ...drawRules(draw, packet)] };
}

function drawName({ from, list, count, affinitySeconds, balance }: Draw): string {
  const isSticky = affinitySeconds > 0;
  const hashed = balance === 'default' ? undefined : balance;
  const name = hashed ?? (isSticky ? 'sticky' : from);
  const suffix = list === 'local' ? '-local' : '';
  return `${name}${suffix}-${hashed ? stableSlots : count}${isSticky ? `-${affinitySeconds}s` : ''}`;
}

function parseDraw([from, local, count, seconds]: readonly (string | undefined)[]): Draw {
  return {
    from: from === 'nodeport' ? 'nodeport' : 'pick',
    list: local === undefined ? 'cluster' : 'local',
    count: Number(count),
    affinitySeconds: Number(seconds ?? 0),
    balance: from === 'hash' || from === 'hash-client' ? from : 'default',
  };
}

interface Split {
  readonly all: Draw;
  readonly local: Draw | undefined;
}

function parseSplit(name: SharedChainName): Split | undefined {
  const match = splitPattern.exec(name);
  if (!match) return undefined;
  return {
    all: parseDraw(match.slice(1, 5)),
    local: match[5] === undefined ? undefined : parseDraw(match.slice(5)),
  };
}

function drawRules(draw: Draw, packet: PacketFields): RuleBody[] {
  if (draw.affinitySeconds > 0 || draw.balance !== 'default') return numberedRules(draw, packet);
  // The count is in this rule and the slots are in the map: a packet between two lookups while a commit takes the
  // last slot away would find nothing. Slot 0 is there for as long as there is an endpoint.
  return [drawRule(draw, draw.count, packet), ...(draw.count > 1 ? [drawRule(draw, 1, packet)] : [])];
}

function drawRule({ from, list }: Draw, count: number, packet: PacketFields): RuleBody {
  const key = from === 'pick' ? 'frontend' : 'nodePort';
  const set = from === 'pick' ? 'endpoints' : 'nodeport-endpoints';
  return [...packet[key](0), drawSlot(list, count, packet.behind(key)), lookup(set, 0, 0), packet.dnat(0)];
}

function markRules(
  purpose: string | undefined,
  settings: NftablesSettings,
  packet: PacketFields,
): RuleBody[] {
  const mark = changeMark(1 << settings.masqueradeBit, true);
  if (purpose === 'external') return [mark];
  if (purpose !== 'cluster') return [];
  if (settings.masqueradeAll) return [mark];
  const foreign = packet.localPod(settings.localDetector, 'neq');
  return foreign ? [[...foreign, ...mark]] : [];
}

/** Short cuts first: local pods keep their address, the node itself is masqueraded; both choose among all. */
function splitRules({ all, local }: Split, settings: NftablesSettings, packet: PacketFields): RuleBody[] {
  const toAll = verdict('goto', drawName(all));
  const fromPod = packet.localPod(settings.localDetector);
  const mark = changeMark(1 << settings.masqueradeBit, true);
  return [
    ...(fromPod ? [[...fromPod, toAll]] : []),
    [...packet.isNodeAddress('saddr'), ...mark, toAll],
    ...(local ? [[verdict('goto', drawName(local))]] : []),
  ];
}

function sourcePrefixes(name: SharedChainName, settings: NftablesSettings): number[] | undefined {
  const list = sourcesPattern.exec(name)?.[1];
  if (list === undefined) return undefined;
  const all = bitsOf(settings.family);
  return list === 'all' ? Array.from({ length: all }, (_, i) => all - i) : list.split('-').map(Number);
}

function sourceRules(prefixes: readonly number[], packet: PacketFields): RuleBody[] {
  const allowed = prefixes.map((prefix) => [
    ...packet.frontend(0),
    ...packet.sourcePrefix(prefix, packet.behind('frontend')),
    lookup(`sources-${prefix}`, 0),
    verdict('return'),
  ]);
  return [...allowed, [verdict('drop')]];
}
