import type { YAMLError } from 'yaml';
import { ConfigError } from './errors.ts';

/** Returns the line, from 1, of an offset in the text. */
export type LineOf = (offset: number) => number;

export function lineIndex(text: string): LineOf {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

/** Upstream's scanner counts lines from 1, its grammar from 0; the search for a colon is one line ahead. */
const GRAMMAR = -1;
const LOOK_AHEAD = 1;

/** The surroundings of an error. */
interface Place {
  /** The text from the error on. */
  readonly rest: string;
  /** The last non-empty line before the error, up to it. */
  readonly line: string;
  /** The previous line with the same indentation, unless a line between is indented less. */
  readonly sibling: string;
}

/** An error in upstream's words. */
interface Mistake {
  readonly upstream: string;
  readonly shift?: number;
}

interface Rule extends Mistake {
  /** Matches our parser's message. */
  readonly ours: RegExp;
  readonly when?: (place: Place) => boolean;
}

export const NAME: Mistake = { upstream: 'did not find expected alphabetic or numeric character' };
export const NODE: Mistake = { upstream: 'did not find expected node content', shift: GRAMMAR };
const KEY = { upstream: 'did not find expected key', shift: GRAMMAR };
const DASH = { upstream: "did not find expected '-' indicator", shift: GRAMMAR };
const SEQUENCE_END = { upstream: "did not find expected ',' or ']'", shift: GRAMMAR };
const MAP_END = { upstream: "did not find expected ',' or '}'", shift: GRAMMAR };
const COLON = { upstream: "could not find expected ':'", shift: LOOK_AHEAD };

/** Plain text at the end of a line may continue in the next one, where upstream then finds the error. */
const endsPlain = ({ line }: Place) => /[^:,?"'[\]{}|>-]$/.test(line) && !/(?:^|\s)#/.test(line);
const endsOpen = ({ line }: Place) => /(?:^|[:,[{-])$/.test(line);

/** Upstream's message for each of our parser's; the first rule that matches applies. */
const rules: readonly Rule[] = [
  { ours: /^Tabs are/, when: endsPlain, upstream: 'found a tab character that violates indentation' },
  { ours: /^Plain value cannot start with flow/, ...NODE },
  { ours: /^Tabs are|^Plain value cannot start/, upstream: 'found character that cannot start any token' },
  {
    ours: /^Nested mappings/,
    when: ({ rest }) => rest.startsWith('?'),
    upstream: 'mapping keys are not allowed in this context',
  },
  { ours: /^Implicit keys need|^A block sequence/, when: ({ rest }) => /^-\s/.test(rest), ...KEY },
  { ours: /^Implicit keys need/, when: ({ sibling }) => sibling !== '', upstream: COLON.upstream },
  { ours: /^Nested|^Implicit keys|^The : ind/, upstream: 'mapping values are not allowed in this context' },
  { ours: /^Implicit map keys need/, ...COLON },
  { ours: /^Unexpected block-seq-ind/, upstream: 'block sequence entries are not allowed in this context' },
  { ours: /^Unexpected (?:flow-|, in flow)|^Flow (?:sequence|map) /, when: endsOpen, ...NODE },
  { ours: /^Unexpected flow-/, ...KEY },
  { ours: /^Flow sequence |^Missing , .* sequence/, ...SEQUENCE_END },
  { ours: /^Flow map |^Missing , .* map|^Block collections|^Unexpected scalar token$/, ...MAP_END },
  {
    ours: /^All mapping items|^Unexpected .* at node end/,
    when: ({ sibling }) => sibling.startsWith('-'),
    ...DASH,
  },
  { ours: /^All mapping items|^Unexpected .* at node end|^A (?:node|block)/, ...KEY },
  { ours: /^All collection items|^Sequence item without/, ...DASH },
  { ours: /^Missing closing/, upstream: 'found unexpected end of stream' },
  { ours: /^Invalid escape sequence \\[xuU]/, upstream: 'did not find expected hexdecimal number' },
  { ours: /^Invalid escape/, upstream: 'found unknown escape character' },
  { ours: /^Block scalar header/, upstream: 'did not find expected comment or line break' },
  { ours: /^Alias c|^Anchor c/, ...NAME },
  { ours: /call stack|Stack overflow/, upstream: 'exceeded max depth' },
];

/** The first error of a document in upstream's form: `yaml: line 3: …`, without a line for the first one. */
export function yamlSyntaxError(
  errors: readonly YAMLError[],
  text: string,
  lineOf: LineOf,
): ConfigError | undefined {
  // Upstream reports an unclosed quote before any error in front of it.
  const error = errors.find(({ message }) => message.startsWith('Missing closing')) ?? errors[0];
  if (!error) return undefined;
  const [start] = error.pos;
  const place = placeOf(text, start);
  const rule = rules.find(({ ours, when = () => true }) => ours.test(error.message) && when(place));
  const grammar = rule?.shift === GRAMMAR;
  // Our parser reports a multi-line key twice; upstream reports it at its end, the colon.
  const key = errors.slice(0, 2).findLast(({ code }) => code === 'MULTILINE_IMPLICIT_KEY');
  // Upstream's grammar counts the end of the text as another line.
  const atEnd = grammar && start >= text.length && !text.endsWith('\n');
  const line = lineOf(key && !grammar ? key.pos[1] : start) + (atEnd ? 1 : 0);
  return mistakeAt(line, rule ?? { upstream: error.message });
}

/** The error for a line, counted from 1; upstream does not name the first line. */
export function mistakeAt(line: number, { upstream, shift = 0 }: Mistake): ConfigError {
  const isFirst = line + Math.max(shift, 0) <= 1;
  return new ConfigError(`yaml: ${isFirst ? '' : `line ${line + shift}: `}${upstream}`);
}

function placeOf(text: string, start: number): Place {
  const before = text.slice(0, start);
  const rest = text.slice(start);
  const column = start - (before.lastIndexOf('\n') + 1) + rest.search(/[^ ]|$/);
  const lines = before.trimEnd().split('\n');
  const sibling = lines.findLast((line) => line.trim() !== '' && line.search(/\S/) <= column) ?? '';
  return {
    rest,
    line: lines.at(-1) ?? '',
    sibling: sibling.search(/\S/) === column ? sibling.trimStart() : '',
  };
}
