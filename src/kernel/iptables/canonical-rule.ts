import { type Family, formatCIDR } from '../../model/ip.ts';
import { protocolsByTool } from '../numbers.ts';
import { parseRange, parseRule, type RuleMatch, type RuleOption, type RuleTarget } from './rule.ts';

/** Modules whose mere presence says nothing that `-p` does not say. */
const protocolModules = new Set(['tcp', 'udp', 'sctp']);
/** What programs add of their own accord; the second word where only that value is the default. */
const defaults: ReadonlySet<string> = new Set([
  '--mask 255.255.255.255',
  `--mask ${Array(8).fill('ffff').join(':')}`,
  '--rsource',
  '--reject-with icmp-port-unreachable',
  '--reject-with icmp6-port-unreachable',
]);
/** The statistic match keeps probabilities in 31 bits. */
const probabilityUnits = 2 ** 31;
const fullMask = '0xffffffff';

/**
 * A text that is the same for two rule lines that do the same, whether they are restore input or what some version of
 * iptables-save made of it. Comments do not count. The line itself when it is no rule.
 */
export function canonicalRule(line: string, family: Family): string {
  const rule = parseRule(line);
  if (!rule) return line;
  const matches = rule.matches
    .filter((match) => match.module !== 'comment')
    .filter(({ module, options }) => options.length > 0 || !protocolModules.has(module))
    .map((match) => matchText(match, family))
    .sort();
  return [`-A ${rule.chain}`, ...matches, ...(rule.target ? [targetText(rule.target, family)] : [])]
    .filter((part) => part !== '')
    .join(' ');
}

function matchText({ module, options }: RuleMatch, family: Family): string {
  const texts = optionTexts(options, family);
  return module === '' ? texts : `-m ${module} ${texts}`.trimEnd();
}

function targetText({ name, isGoto, options }: RuleTarget, family: Family): string {
  return `${isGoto ? '-g' : '-j'} ${name} ${optionTexts(options, family)}`.trimEnd();
}

function optionTexts(options: readonly RuleOption[], family: Family): string {
  return options
    .map((option) => optionText(option, family))
    .filter((text) => !defaults.has(text))
    .sort()
    .join(' ');
}

function optionText({ name, values, isNegated }: RuleOption, family: Family): string {
  const [first = ''] = values;
  const [spelling, value] = spelled(name, first, family);
  return [...(isNegated ? ['!'] : []), spelling, value, ...values.slice(1)]
    .filter((word) => word !== '')
    .join(' ');
}

/** One spelling for options that have several, and one for their values. */
function spelled(name: string, value: string, family: Family): readonly [string, string] {
  switch (name) {
    case '-s':
    case '-d':
    case '--vaddr':
      return [name, rangeText(value, family)];
    case '--vproto':
      return [name, `${protocolsByTool.get(value) ?? value}`];
    case '--probability':
      return [name, `${Math.round(Number(value) * probabilityUnits)}`];
    case '--ctstate':
      return [name, value.split(',').sort().join(',')];
    case '--mark':
    case '--set-xmark':
      return [name, markText(value)];
    case '--or-mark':
      return ['--set-xmark', markText(`${value}/${value}`)];
    case '--xor-mark':
      return ['--set-xmark', markText(`${value}/0`)];
    default:
      return [name, value];
  }
}

function rangeText(text: string, family: Family): string {
  const cidr = parseRange(text, family);
  return cidr ? formatCIDR(cidr) : text;
}

function markText(text: string): string {
  const [value = '', mask = fullMask] = text.split('/');
  return `0x${Number(value).toString(16)}/0x${Number(mask).toString(16)}`;
}
