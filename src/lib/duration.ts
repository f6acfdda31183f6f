/** One unit of time in nanoseconds, as Go counts them. */
export const MILLISECOND = 1_000_000n;
export const SECOND = 1_000n * MILLISECOND;
export const MINUTE = 60n * SECOND;
export const HOUR = 60n * MINUTE;

const MICROSECOND = 1_000n;
const MAX_INT64 = (1n << 63n) - 1n;

/** Both micro signs are accepted: U+00B5 (the one printed) and U+03BC. */
const units = new Map<string, bigint>([
  ['ns', 1n],
  ['us', MICROSECOND],
  ['\u00b5s', MICROSECOND],
  ['\u03bcs', MICROSECOND],
  ['ms', MILLISECOND],
  ['s', SECOND],
  ['m', MINUTE],
  ['h', HOUR],
]);

/**
 * Reads a Go duration (`1h30m`, `-1.5s`, `0`) as nanoseconds. Throws an Error with Go's text when the form, a
 * unit or the 64-bit range is wrong.
 */
export function parseDuration(text: string): bigint {
  const invalid = () => new Error(`time: invalid duration ${quoteBytes(text)}`);
  const negative = text.startsWith('-');
  let rest = negative || text.startsWith('+') ? text.slice(1) : text;
  if (rest === '0') return 0n;
  if (rest === '') throw invalid();
  let total = 0n;
  while (rest !== '') {
    const [term = '', whole = '', fraction = '', unit = ''] =
      /^([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/.exec(rest) ?? [];
    if (whole === '' && fraction === '') throw invalid();
    const lead = BigInt(whole);
    if (lead > MAX_INT64 + 1n) throw invalid();
    if (unit === '') throw new Error(`time: missing unit in duration ${quoteBytes(text)}`);
    const scale = units.get(unit);
    if (scale === undefined) {
      throw new Error(`time: unknown unit ${quoteBytes(unit)} in duration ${quoteBytes(text)}`);
    }
    total += lead * scale + fractionOf(fraction, scale);
    if (total > MAX_INT64 + 1n) throw invalid();
    rest = rest.slice(term.length);
  }
  if (negative) return -total;
  if (total > MAX_INT64) throw invalid();
  return total;
}

/** Formats a duration as Go does: `15m0s`, `1.5s`, `100ms`, `1µs`, `0s`. */
export function formatDuration(ns: bigint): string {
  if (ns === 0n) return '0s';
  const sign = ns < 0n ? '-' : '';
  const abs = ns < 0n ? -ns : ns;
  if (abs < MICROSECOND) return `${sign}${abs}ns`;
  if (abs < MILLISECOND) return `${sign}${decimal(abs, MICROSECOND)}\u00b5s`;
  if (abs < SECOND) return `${sign}${decimal(abs, MILLISECOND)}ms`;
  const seconds = `${decimal(abs % MINUTE, SECOND)}s`;
  if (abs < MINUTE) return sign + seconds;
  const minutes = `${(abs / MINUTE) % 60n}m${seconds}`;
  return abs < HOUR ? sign + minutes : `${sign}${abs / HOUR}h${minutes}`;
}

/** Converts to milliseconds for JavaScript timers, with a fraction. */
export function toMillis(ns: bigint | number): number {
  return Number(ns) / 1e6;
}

/**
 * Returns the nanoseconds of the digits behind the point. As in Go, it calculates in floating point and drops digits
 * that do not fit 63 bits, to get the same nanosecond.
 */
function fractionOf(digits: string, scale: bigint): bigint {
  let value = 0n;
  let divisor = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (value > MAX_INT64 / 10n || next > MAX_INT64 + 1n) break;
    value = next;
    divisor *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(scale) / divisor)));
}

function decimal(value: bigint, unit: bigint): string {
  const fraction = (value % unit)
    .toString()
    .padStart(unit.toString().length - 1, '0')
    .replace(/0+$/, '');
  return fraction === '' ? `${value / unit}` : `${value / unit}.${fraction}`;
}

/** Quotes like Go's time package, which escapes every byte outside printable ASCII. */
function quoteBytes(text: string): string {
  let quoted = '';
  for (const byte of new TextEncoder().encode(text)) {
    const char = String.fromCharCode(byte);
    if (byte >= 0x80 || byte < 0x20) quoted += `\\x${byte.toString(16).padStart(2, '0')}`;
    else quoted += char === '"' || char === '\\' ? `\\${char}` : char;
  }
  return `"${quoted}"`;
}
