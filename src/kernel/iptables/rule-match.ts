import { cidrContains, type Family, formatIP, type IP, joinHostPort } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { nameOf, protocolNumbers } from '../numbers.ts';
import { optionOf, parseRange, type Rule, type RuleMatch, type RuleOption } from './rule.ts';

/** The first packet of a connection, at some point of its way through the tables. */
export interface RulePacket {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly source: IP;
  readonly destination: IP;
  readonly port: number;
  /** The interface that it came in by: undefined where the node made it, '' where that is not known. */
  readonly interface: string | undefined;
  readonly mark: number;
  /** Its destination has been rewritten. */
  readonly isRewritten: boolean;
  /** `address:port/PROTOCOL` of the virtual server of IPVS that it came through. */
  readonly virtualServer?: string;
}

/** What matches ask besides the packet. */
export interface MatchFacts {
  /** The address is one of this node's. */
  isLocal(address: IP): boolean;
  /** It came in by a port of a bridge, and bridged packets pass the tables. */
  isBridged(packet: RulePacket): boolean;
  /** Whether a set has what the packet has there (`dst,dst,src`); undefined when there is no such set. */
  isInSet?(set: string, dimensions: readonly string[], packet: RulePacket): boolean | undefined;
}

/** A rule that nothing here knows the meaning of, so that nobody can tell what becomes of the packet. */
export class RuleNotUnderstoodError extends Error {
  readonly code = 'ERR_RULE_NOT_UNDERSTOOD';
  /** What led there; the rule last. */
  readonly evidence: readonly string[];

  constructor(what: string, evidence: readonly string[]) {
    super(`not understood: ${what}, in the rule ${evidence.at(-1)}`);
    this.name = 'RuleNotUnderstoodError';
    this.evidence = evidence;
  }
}

/** How likely a match is; a text says what about it is not understood. */
type Chance = number | string;

/**
 * How likely the packet matches the rule: 0, 1, or what a random match makes of it. Lists of clients seen before
 * (`recent --rcheck`) count as matched: whether the client is on one is for the caller to say. A text says what about
 * the rule is not understood, when it depends on that.
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

/** Seconds for which a rule sends clients back to where they went before; undefined when it does not look for that. */
export function affinityOf({ matches }: Rule): number | undefined {
  const recent = matches.find(({ module }) => module === 'recent');
  if (!recent?.options.some(({ name }) => name === '--rcheck' || name === '--update')) return undefined;
  return Number(optionOf(recent, '--seconds')?.values[0] ?? 0);
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

/** Of an option as if it were not negated. */
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
      return isIn === undefined ? `set ${value}, which cannot be looked into` : yes(isIn);
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

/** A first packet is NEW, and DNAT when its destination was rewritten. */
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
