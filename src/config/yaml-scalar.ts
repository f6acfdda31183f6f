import type { Json } from './json-tree.ts';

/** The type and value of a plain scalar. A timestamp's value is text, but it must not be written plain. */
export interface ResolvedScalar {
  readonly type: 'null' | 'bool' | 'int' | 'float' | 'timestamp' | 'string';
  readonly value: Json;
}

const MIN_INT64 = -(1n << 63n);
const MAX_UINT64 = (1n << 64n) - 1n;

const words = new Map<string, ResolvedScalar>();
for (const word of ['', '~', 'null', 'Null', 'NULL']) words.set(word, { type: 'null', value: null });
for (const word of ['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON', 'true', 'True', 'TRUE']) {
  words.set(word, { type: 'bool', value: true });
}
for (const word of ['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF', 'false', 'False', 'FALSE']) {
  words.set(word, { type: 'bool', value: false });
}
const infinities = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const timestamp =
  /^\d{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12]\d|3[01])(?:[Tt]\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d+)?(?:Z|[-+]\d\d:\d\d)| +\d{1,2}:\d{1,2}:\d{1,2}(?:\.\d+)?)?$/;
const float = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/**
 * Resolves an unquoted scalar as the YAML 1.1 reader of Kubernetes does: `yes` is a boolean, `0777` is octal, `1_000`
 * is a number, but `1:30` is not a base-60 number. Infinities have no JSON form; their value is their text.
 */
export function resolvePlain(text: string): ResolvedScalar {
  const word = words.get(text);
  if (word) return word;
  if (infinities.test(text)) return { type: 'float', value: text };
  if (timestamp.test(text)) return { type: 'timestamp', value: text };
  // Underscores may separate digits, except before them and in a number that starts with its decimal point.
  const digits = /^[-+0-9]/.test(text) ? text.replaceAll('_', '') : text;
  const int = parseInteger(digits);
  if (int !== undefined) return { type: 'int', value: { kind: 'number', text: String(int) } };
  if (float.test(digits) && Number.isFinite(Number(digits))) {
    return { type: 'float', value: { kind: 'number', text: String(Number(digits)) } };
  }
  return { type: 'string', value: text };
}

/** An integer in Go's notation (0x, 0o, 0b, leading 0 for octal) that fits 64 bits, signed or not. */
function parseInteger(text: string): bigint | undefined {
  const match = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))$/.exec(text);
  // Too long for 64 bits in any base; BigInt would be slow.
  if (!match || text.length > 70) return undefined;
  const [, sign, hex, binary, octal, decimal] = match;
  const magnitude = BigInt(
    hex ? `0x${hex}` : binary ? `0b${binary}` : octal ? `0o${octal}` : (decimal ?? '0'),
  );
  const value = sign === '-' ? -magnitude : magnitude;
  if (value < MIN_INT64 || value > MAX_UINT64) return undefined;
  return sign === '+' && value >= 1n << 63n ? undefined : value;
}
