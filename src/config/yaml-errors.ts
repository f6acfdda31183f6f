import type { YAMLError } from 'yaml';
import { ConfigError } from './errors.ts';

/** Gives the line (from 1) of an offset in the text. */
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

/** What upstream's reader says where ours finds the same mistake, by the start of our parser's message. */
const upstreamWords: readonly (readonly [ours: RegExp, upstream: string])[] = [
  [/^Plain value cannot start|^Tabs are not allowed/, 'found character that cannot start any token'],
  [/^Nested mappings|^Implicit keys need to be on/, 'mapping values are not allowed in this context'],
  [/^Implicit map keys need/, "could not find expected ':'"],
  [/^Unexpected block-seq-ind/, 'block sequence entries are not allowed in this context'],
  [/^Unexpected flow-/, 'did not find expected node content'],
  [/^Flow sequence /, "did not find expected ',' or ']'"],
  [/^Flow map /, "did not find expected ',' or '}'"],
  [/^All mapping items|^Unexpected .* at node end/, 'did not find expected key'],
  [/^All collection items|^Sequence item without/, "did not find expected '-' indicator"],
  [/^Missing closing/, 'found unexpected end of stream'],
  [/^Invalid escape/, 'found unknown escape character'],
  [/call stack|Stack overflow/, 'exceeded max depth'],
];

/** The first error of a document in upstream's form: `yaml: line 3: …`, without a line for the first one. */
export function yamlSyntaxError(errors: readonly YAMLError[], lineOf: LineOf): ConfigError | undefined {
  const [error, next] = errors;
  if (!error) return undefined;
  // A key that spans lines is reported twice; its end, the colon, is where upstream gives up.
  const key = [next, error].find((candidate) => candidate?.code === 'MULTILINE_IMPLICIT_KEY');
  const words = upstreamWords.find(([ours]) => ours.test(error.message))?.[1] ?? error.message;
  // Upstream's scanner looks a line ahead for a colon, and its grammar counts lines from 0.
  const offBy = words.startsWith('could not find') ? 1 : words.startsWith('did not find') ? -1 : 0;
  const line = lineOf(key ? key.pos[1] : error.pos[0]) + offBy;
  const isFirst = line - Math.min(offBy, 0) <= 1;
  return new ConfigError(`yaml: ${isFirst ? '' : `line ${line}: `}${words}`);
}
