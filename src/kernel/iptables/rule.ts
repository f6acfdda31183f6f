import { bitsOf, type CIDR, type Family, parseCIDR } from '../../model/ip.ts';

/** One option of a match or a target, with the words that follow it: `! --ctstate INVALID`. */
export interface RuleOption {
  readonly name: string;
  readonly values: readonly string[];
  readonly isNegated: boolean;
}

/** The options of one match module. Options without a module, such as `-s`, belong to module ''. */
export interface RuleMatch {
  readonly module: string;
  readonly options: readonly RuleOption[];
}

export interface RuleTarget {
  readonly name: string;
  /** `-g`: a packet that leaves the target chain does not return to this chain. */
  readonly isGoto: boolean;
  readonly options: readonly RuleOption[];
}

/** A rule of restore input or of a dump. */
export interface Rule {
  readonly chain: string;
  /** The match of module '' comes first. */
  readonly matches: readonly RuleMatch[];
  /** Undefined for a rule that only counts. */
  readonly target: RuleTarget | undefined;
}

interface Word {
  readonly text: string;
  readonly isQuoted: boolean;
}

interface OpenMatch extends RuleMatch {
  readonly options: RuleOption[];
}

/** Reads an `-A` line; undefined for any other line. Never throws, and accepts unknown options. */
export function parseRule(line: string): Rule | undefined {
  const words = wordsOf(line);
  const chain = words[1]?.text;
  if (words[0]?.text !== '-A' || chain === undefined) return undefined;
  const basic: OpenMatch = { module: '', options: [] };
  const matches = [basic];
  let target: (RuleTarget & { readonly options: RuleOption[] }) | undefined;
  let isNegated = false;
  for (let at = 2; at < words.length; ) {
    const name = words[at]?.text ?? '';
    if (name === '!') {
      isNegated = true;
      at++;
      continue;
    }
    const values = valuesAt(words, at + 1, name);
    at += 1 + values.length;
    const [first = ''] = values;
    if (name === '-m') matches.push({ module: first, options: [] });
    else if (name === '-j' || name === '-g') target = { name: first, isGoto: name === '-g', options: [] };
    else {
      const owner = target ?? (name.startsWith('--') ? matches.at(-1) : undefined) ?? basic;
      owner.options.push({ name, values, isNegated });
    }
    isNegated = false;
  }
  return { chain, matches, target };
}

/** The option with this name; undefined when the match or target does not have it. */
export function optionOf({ options }: RuleMatch | RuleTarget, name: string): RuleOption | undefined {
  return options.find((option) => option.name === name);
}

/** Reads `10.0.0.0/8`, or one address; undefined when it is neither. */
export function parseRange(text: string, family: Family): CIDR | undefined {
  return parseCIDR(text.includes('/') ? text : `${text}/${bitsOf(family)}`);
}

/** Words up to the next option. A comment is always one word, also when it begins with `-`. */
function valuesAt(words: readonly Word[], start: number, option: string): string[] {
  const values: string[] = [];
  const end = option === '--comment' ? Math.min(words.length, start + 1) : words.length;
  for (let at = start; at < end; at++) {
    const { text = '', isQuoted = false } = words[at] ?? {};
    if (option !== '--comment' && !isQuoted && (text === '!' || text.startsWith('-'))) break;
    values.push(text);
  }
  return values;
}

/** Words are separated by spaces. In quotes, a backslash escapes the next character. */
function wordsOf(line: string): Word[] {
  const words: Word[] = [];
  for (const [, quoted, plain] of line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)) {
    if (quoted !== undefined) words.push({ text: quoted.replace(/\\(.)/g, '$1'), isQuoted: true });
    else words.push({ text: plain ?? '', isQuoted: false });
  }
  return words;
}
