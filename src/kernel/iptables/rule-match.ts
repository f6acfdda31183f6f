import { cidrContains, type Family, formatIP, type IP, joinHostPort } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { nameOf, protocolNumbers } from '../numbers.ts';
import { optionOf, parseRange, type Rule, type RuleMatch, type RuleOption } from './rule.ts';

/** The first packet of a connection, at some point on its path through the tables. */
export interface RulePacket {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly source: IP;
  readonly destination: IP;
  readonly port: number;
  /** Name of the input interface: undefined for packets of this node, '' when not known. */
  readonly interface: string | undefined;
  readonly mark: number;
  /** DNAT rewrote its destination. */
  readonly isRewritten: boolean;
  /** `address:port/PROTOCOL` of the IPVS virtual server that handled it. */
  readonly virtualServer?: string;
}

/** Facts beside the packet that matches depend on. */
export interface MatchFacts {
  /** Whether the address is this node's. */
  isLocal(address: IP): boolean;
  /** Whether the packet came in by a bridge port and bridged packets pass the tables. */
  isBridged(packet: RulePacket): boolean;
  /** Seconds since a list of the match `recent` saw an address; undefined when it does not have it. */
  secondsSinceSeen?(list: string, address: IP): number | undefined;
  /** Whether a set contains the packet's fields (`dst,dst,src`); undefined when there is no such set. */
  isInSet?(set: string, dimensions: readonly string[], packet: RulePacket): boolean | undefined;
}

/** The packet met a rule that this program cannot evaluate, so its fate is unknown. */
export class RuleNotUnderstoodError extends Error {
  readonly code = 'ERR_RULE_NOT_UNDERSTOOD';
  /** Rules that matched before, and the rule itself last. */
  readonly evidence: readonly string[];

  constructor(what: string, evidence: readonly string[]) {
    super(`not understood: ${what}, in the rule ${evidence.at(-1)}`);
    this.name = 'RuleNotUnderstoodError';
    this.evidence = evidence;
  }
}

/** The probability of a match, or a text that names the part that is not understood. */
type Chance = number | string;

/**
 * The probability that the packet matches the rule: 0, 1, or between for a random match. A lookup of known clients
 * (`recent --rcheck`) counts as a match; the caller decides whether the client is known. Returns a text when the answer
 * depends on a part that is not understood.
 */
export function chanceOf(rule: Rule, packet: RulePacket, facts: MatchFacts): Chance {
  let chance = 1;
  let problem: string | undefined;
  for (const match of rule.matches) {
    const one = chanceOfMatch(match, packet, facts);
    if (one === 0) return 0;
    if (typeof one === 'string') problem ??= one;
    else chance *= one;
  }
  return problem ?? chance;
}

/** A rule that sends a known client to the same endpoint: for how many seconds, and the list that has the client. */
export interface Affinity {
  readonly seconds: number;
  readonly list: string;
}

/** Undefined for rules without affinity. */
export function affinityOf({ matches }: Rule): Affinity | undefined {
  const recent = matches.find(({ module }) => module === 'recent');
  if (!recent?.options.some(({ name }) => name === '--rcheck' || name === '--update')) return undefined;
  return {
    seconds: Number(optionOf(recent, '--seconds')?.values[0] ?? 0),
    list: optionOf(recent, '--name')?.values[0] ?? '',
  };
}

function chanceOfMatch(match: RuleMatch, packet: RulePacket, facts: MatchFacts): Chance {
  const { module, options } = match;
  switch (module) {
    case 'comment':
    case 'nfacct':
      return 1;
    case 'recent':
      return options.some(({ isNegated }) => isNegated) ? textOf(match) : 1;
    case 'statistic':
      return statisticChance(match);
    case 'ipvs':
      return ipvsChance(match, packet);
    default:
      return all(options, (option) => optionChance(module, option, packet, facts));
  }
}

function all(options: readonly RuleOption[], chanceOfOption: (option: RuleOption) => Chance): Chance {
  let problem: string | undefined;
  for (const option of options) {
    const chance = chanceOfOption(option);
    if (typeof chance === 'string') problem ??= chance;
    else if ((chance === 0) !== option.isNegated) return 0;
  }
  return problem ?? 1;
}

/** The probability for an option, ignoring its negation. */
function optionChance(module: string, option: RuleOption, packet: RulePacket, facts: MatchFacts): Chance {
  const { name, values } = option;
  const [value = ''] = values;
  switch (`${module} ${name}`) {
    case ' -s':
      return rangeChance(value, packet.source, option);
    case ' -d':
      return rangeChance(value, packet.destination, option);
    case ' -p':
      return yes(value === packet.protocol.toLowerCase() || value === 'all');
    case ' -i':
      return yes(isInterface(value, packet.interface));
    case 'tcp --dport':
    case 'udp --dport':
    case 'sctp --dport':
      return portChance(value, packet.port, option);
    case 'conntrack --ctstate':
      return stateChance(value, packet);
    case 'mark --mark':
      return markChance(value, packet.mark, option);
    case 'addrtype --src-type':
      return value === 'LOCAL' ? yes(facts.isLocal(packet.source)) : optionText(option);
    case 'addrtype --dst-type':
      return value === 'LOCAL' ? yes(facts.isLocal(packet.destination)) : optionText(option);
    case 'physdev --physdev-is-in':
      return yes(facts.isBridged(packet));
    case 'set --match-set': {
      const isIn = facts.isInSet?.(value, (values[1] ?? '').split(','), packet);
      return isIn === undefined ? `set ${value}, which cannot be read` : yes(isIn);
    }
    default:
      return module === '' ? optionText(option) : `-m ${module} ${optionText(option)}`;
  }
}

function yes(isTrue: boolean): number {
  return isTrue ? 1 : 0;
}

function rangeChance(range: string, address: IP, option: RuleOption): Chance {
  const cidr = parseRange(range, address.family);
  return cidr ? yes(cidrContains(cidr, address)) : optionText(option);
}

function isInterface(wanted: string, name: string | undefined): boolean {
  if (name === undefined || name === '') return false;
  return wanted.endsWith('+') ? name.startsWith(wanted.slice(0, -1)) : name === wanted;
}

function portChance(range: string, port: number, option: RuleOption): Chance {
  const found = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(range);
  if (!found) return optionText(option);
  const [, first, last = first] = found;
  return yes(Number(first) <= port && port <= Number(last));
}

/** The first packet of a connection is NEW, and also DNAT when its destination was rewritten. */
function stateChance(states: string, { isRewritten }: RulePacket): Chance {
  const wanted = states.split(',');
  return yes(wanted.includes('NEW') || (isRewritten && wanted.includes('DNAT')));
}

function markChance(text: string, mark: number, option: RuleOption): Chance {
  const parsed = parseMark(text);
  if (!parsed) return optionText(option);
  // Unsigned, so that bit 31 compares like any other.
  return yes((mark & parsed.mask) >>> 0 === parsed.value);
}

/** `value/mask`, both in hexadecimal or decimal; the mask is all ones when absent. */
export function parseMark(text: string): { readonly value: number; readonly mask: number } | undefined {
  const [value, mask = 0xffffffff] = text.split('/').map(Number);
  if (value === undefined || !isWord(value) || !isWord(mask)) return undefined;
  return { value, mask };
}

function isWord(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= 0xffffffff;
}

function statisticChance(match: RuleMatch): Chance {
  const option = optionOf(match, '--probability');
  const mode = optionOf(match, '--mode')?.values[0];
  const probability = Number(option?.values[0] ?? Number.NaN);
  if (mode !== 'random' || !option || !(probability >= 0 && probability <= 1)) return textOf(match);
  return option.isNegated ? 1 - probability : probability;
}

/** Whether the packet came through the virtual server with this address, protocol and port; all three must be given. */
function ipvsChance(match: RuleMatch, { virtualServer, family }: RulePacket): Chance {
  const value = (name: string) => optionOf(match, name)?.values[0];
  const [address, protocol, port] = [value('--vaddr'), value('--vproto'), value('--vport')];
  const isPlain = match.options.length === 3 && match.options.every(({ isNegated }) => !isNegated);
  const cidr = address === undefined ? undefined : parseRange(address, family);
  if (!isPlain || !cidr || protocol === undefined) return textOf(match);
  const name = nameOf(protocolNumbers, Number(protocol)) ?? protocol.toUpperCase();
  return yes(virtualServer === `${joinHostPort(formatIP(cidr), Number(port))}/${name}`);
}

function textOf({ module, options }: RuleMatch): string {
  return `-m ${module} ${options.map(optionText).join(' ')}`;
}

function optionText({ name, values, isNegated }: RuleOption): string {
  return [...(isNegated ? ['!'] : []), name, ...values].join(' ');
}
