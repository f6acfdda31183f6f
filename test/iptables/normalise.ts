import type { Family } from '../../src/model/ip.ts';

/** The rules of each chain of one table, as iptables-save prints them. */
export type Chains = ReadonlyMap<string, readonly string[]>;

/** Which match an option belongs to; `protocol` stands for tcp, udp or sctp. */
const matchOf: Readonly<Record<string, string>> = {
  '--comment': 'comment',
  '--dport': 'protocol',
  '--ctstate': 'conntrack',
  '--mark': 'mark',
  '--dst-type': 'addrtype',
  '--src-type': 'addrtype',
  '--mode': 'statistic',
  '--probability': 'statistic',
  '--nfacct-name': 'nfacct',
  '--name': 'recent',
  '--rcheck': 'recent',
  '--set': 'recent',
  '--seconds': 'recent',
  '--reap': 'recent',
};

const protocols = ['tcp', 'udp', 'sctp'];
const flags = new Set(['--rcheck', '--set', '--reap', '--random-fully']);

interface Match {
  readonly name: string;
  readonly options: Map<string, { readonly value: string; readonly isNegated: boolean }>;
}

interface Rule {
  readonly chain: string;
  readonly addresses: Map<string, string>;
  readonly matches: Match[];
  readonly target: string[];
}

/** What iptables-save prints, without counters, for a rule line of restore input. */
export function savedForm(line: string, family: Family): string {
  const { chain, addresses, matches, target } = parse(line, family);
  const words = ['-A', chain];
  for (const option of ['-s', '-d', '-i', '-p']) {
    const text = addresses.get(option);
    if (text !== undefined) words.push(text);
  }
  for (const match of matches) words.push('-m', match.name, ...optionWords(match, family));
  if (target.length > 0) words.push('-j', ...targetWords(target, family));
  return words.join(' ');
}

function parse(line: string, family: Family): Rule {
  const words = line.match(/"[^"]*"|\S+/g) ?? [];
  const rule: Rule = { chain: words[1] ?? '', addresses: new Map(), matches: [], target: [] };
  let isNegated = false;
  for (let at = 2; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '!') {
      isNegated = true;
      continue;
    }
    if (word === '-j') {
      rule.target.push(...words.slice(at + 1));
      break;
    }
    const value = flags.has(word) ? '' : (words[++at] ?? '');
    if (word === '-m') rule.matches.push({ name: value, options: new Map() });
    else if (word.startsWith('--')) matchFor(rule, word).options.set(word, { value, isNegated });
    else rule.addresses.set(word, `${isNegated ? '! ' : ''}${word} ${addressText(word, value, family)}`);
    isNegated = false;
  }
  return rule;
}

function matchFor({ matches }: Rule, option: string): Match {
  const wanted = matchOf[option];
  const found = matches.findLast(
    ({ name }) => name === wanted || (wanted === 'protocol' && protocols.includes(name)),
  );
  if (!found) throw new Error(`${option} without its match`);
  return found;
}

function addressText(option: string, value: string, family: Family): string {
  if ((option !== '-s' && option !== '-d') || value.includes('/')) return value;
  return `${value}/${family === 'IPv4' ? 32 : 128}`;
}

function optionWords({ name, options }: Match, family: Family): string[] {
  if (name === 'recent') return recentWords(options, family);
  return [...options].flatMap(([option, { value, isNegated }]) => [
    ...(isNegated ? ['!'] : []),
    option,
    valueText(option, value),
  ]);
}

function recentWords(options: Match['options'], family: Family): string[] {
  const mask = family === 'IPv4' ? '255.255.255.255' : Array(8).fill('ffff').join(':');
  const listed = ['--rcheck', '--set', '--seconds', '--reap', '--name'].flatMap((option) => {
    const found = options.get(option);
    if (!found) return [];
    return found.value === '' ? [option] : [option, found.value];
  });
  return [...listed, '--mask', mask, '--rsource'];
}

function valueText(option: string, value: string): string {
  switch (option) {
    case '--comment': {
      const text = value.replaceAll('"', '');
      return /^[\w-]+$/.test(text) ? text : `"${text}"`;
    }
    case '--probability':
      return (Math.round(Number(value) * 0x80000000) / 0x80000000).toFixed(11);
    case '--mark':
      return value.split('/').map(shortHex).join('/');
    case '--nfacct-name':
      return ` ${value}`;
    default:
      return value;
  }
}

function targetWords([target = '', option = '', value = '']: readonly string[], family: Family): string[] {
  if (target === 'REJECT')
    return [target, '--reject-with', `${family === 'IPv4' ? 'icmp' : 'icmp6'}-port-unreachable`];
  if (option === '--or-mark') return [target, '--set-xmark', `${shortHex(value)}/${shortHex(value)}`];
  if (option === '--xor-mark') return [target, '--set-xmark', `${shortHex(value)}/0x0`];
  return [target, option, value].filter((word) => word !== '');
}

function shortHex(text: string): string {
  return `0x${Number.parseInt(text, 16).toString(16)}`;
}

/** The chains of one table out of what iptables-save printed, line by line. */
export function chainsOf(lines: readonly string[]): Map<string, string[]> {
  const chains = new Map<string, string[]>();
  for (const line of lines) {
    const [word = '', chain = ''] = line.split(' ');
    if (word.startsWith(':')) chains.set(word.slice(1), chains.get(word.slice(1)) ?? []);
    if (word !== '-A') continue;
    const rules = chains.get(chain) ?? [];
    rules.push(line);
    chains.set(chain, rules);
  }
  return chains;
}

/** The lines of one table in the output of iptables-save. */
export function tableOf(saved: string, table: string): string[] {
  const lines = saved.split('\n');
  const start = lines.indexOf(`*${table}`);
  if (start < 0) return [];
  return lines
    .slice(start + 1, lines.indexOf('COMMIT', start))
    .map((line) => line.replace(/\[\d+:\d+\]/, '[0:0]'));
}

const sharedChains = new Set([
  'KUBE-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-PROXY-FIREWALL',
]);

/**
 * Chains in a form in which two programs can be compared. Upstream visits service ports in no fixed order, so in shared
 * chains only the order of the rules of one service port counts.
 */
export function comparable(chains: Chains): Record<string, string[]> {
  const sorted = [...chains].map(([chain, rules]): [string, string[]] => [
    chain,
    sharedChains.has(chain) ? stableSort(rules) : [...rules],
  ]);
  return Object.fromEntries(sorted.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function stableSort(rules: readonly string[]): string[] {
  const keyed = rules.map((rule) => ({ rule, key: sortKey(rule) }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)).map(({ rule }) => rule);
}

function sortKey(rule: string): string {
  const comment = /--comment (?:"([^"]*)"|(\S+))/.exec(rule);
  const text = comment?.[1] ?? comment?.[2] ?? '';
  // Several of these differ only in the address, and have no fixed order.
  if (text.includes('this must be the last rule')) return `~${rule}`;
  return `${text.split(' ')[0]} ${/ -p (\S+)/.exec(rule)?.[1]}`;
}
