import { type Family, formatCIDR } from '../../model/ip.ts';
import { protocolsByTool } from '../numbers.ts';
import { parseRange, parseRule, type RuleMatch, type RuleOption, type RuleTarget } from './rule.ts';

/** A match of these modules without options says no more than `-p`. */
const protocolModules = new Set(['tcp', 'udp', 'sctp']);
/** Options that the programs add by default. */
const defaults: ReadonlySet<string> = new Set([
  '--mask 255.255.255.255',
  `--mask ${Array(8).fill('ffff').join(':')}`,
  '--rsource',
  '--reject-with icmp-port-unreachable',
  '--reject-with icmp6-port-unreachable',
]);
/** The kernel's statistic match stores probabilities in 31 bits. */
const probabilityUnits = 2 ** 31;
const fullMask = '0xffffffff';

/**
 * Returns the same text for all lines that mean the same rule, in restore input or in the output of any version of
 * iptables-save. Ignores comments. Returns a line that is not a rule unchanged.
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

/** One spelling for each option and value that has several. */
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
