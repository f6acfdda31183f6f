/** A Kubernetes resource quantity. */
export interface ParsedQuantity {
  /** The text that Kubernetes prints: as written if its scale is canonical, else in canonical form. */
  readonly text: string;
  /** The integer value; fractions are rounded away from zero. */
  readonly value: bigint;
}

const FORMAT_ERROR =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_ERROR = "unable to parse quantity's suffix";

const NANOS = 1_000_000_000n;
const MAX_NANOS = ((1n << 63n) - 1n) * NANOS;

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

type Format = 'decimalSI' | 'decimalExponent' | 'binarySI';

interface Suffix {
  readonly format: Format;
  readonly base: 2n | 10n;
  readonly exponent: number;
}

/**
 * Reads a quantity such as `512`, `1500m`, `2Ki` or `3e6`; without digits it is zero. The result is in billionths,
 * rounded away from zero, and at most 2^63-1. Throws an Error with Kubernetes' text.
 */
export function parseQuantity(text: string): ParsedQuantity {
  const match = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/.exec(text);
  if (!match || text === '') throw new Error(FORMAT_ERROR);
  const [, sign = '', whole = '', fraction = '', suffixText = ''] = match;
  const suffix = parseSuffix(suffixText);
  if (!suffix) throw new Error(SUFFIX_ERROR);
  const digits = BigInt(whole + fraction);
  const magnitude = nanosOf(digits, fraction.length, suffix);
  const nanos = sign === '-' ? -magnitude : magnitude;
  const asWritten = fraction === '' && isCanonical(digits, suffix);
  return { text: asWritten ? text : formatQuantity(nanos, suffix.format), value: roundAway(nanos, NANOS) };
}

/** Whether this is canonical form: no larger unit divides the number. */
function isCanonical(digits: bigint, { base, exponent }: Suffix): boolean {
  if (base === 2n) return digits % 1024n !== 0n && digits << BigInt(exponent) < 1n << 63n;
  return digits % 1000n !== 0n && exponent % 3 === 0 && exponent >= -9;
}

function parseSuffix(text: string): Suffix | undefined {
  const decimal = decimalSuffixes.indexOf(text);
  if (decimal >= 0) return { format: 'decimalSI', base: 10n, exponent: (decimal - 3) * 3 };
  const binary = binarySuffixes.indexOf(text);
  if (binary > 0) return { format: 'binarySI', base: 2n, exponent: binary * 10 };
  const digits = /^[eE]([-+]?[0-9]+)$/.exec(text)?.[1];
  if (digits === undefined) return undefined;
  const exponent = BigInt(digits.replace('+', ''));
  if (BigInt.asIntN(64, exponent) !== exponent) return undefined;
  return { format: 'decimalExponent', base: 10n, exponent: Number(exponent) };
}

/** Returns the magnitude in billionths, rounded up and capped. `digits` have `scale` places behind the point. */
function nanosOf(digits: bigint, scale: number, { base, exponent }: Suffix): bigint {
  if (digits === 0n) return 0n;
  if (base === 2n) return capped(roundAway(digits * 2n ** BigInt(exponent) * NANOS, 10n ** BigInt(scale)));
  const shift = exponent - scale + 9;
  // Far outside the range the answer is known, and computing the power would take too long.
  if (shift > 64) return MAX_NANOS;
  if (shift < 0) {
    const length = digits.toString().length;
    return length + shift <= 0 ? 1n : capped(roundAway(digits, 10n ** BigInt(-shift)));
  }
  return capped(digits * 10n ** BigInt(shift));
}

function capped(nanos: bigint): bigint {
  return nanos > MAX_NANOS ? MAX_NANOS : nanos;
}

/** Divides and rounds away from zero. */
function roundAway(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  if (value % divisor === 0n) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

function formatQuantity(nanos: bigint, format: Format): string {
  if (nanos === 0n) return '0';
  const limit = 1024n * NANOS;
  if (format === 'binarySI' && (nanos >= limit || nanos <= -limit)) return formatBinary(nanos);
  let mantissa = nanos;
  let exponent = -9;
  while (mantissa % 1000n === 0n && exponent < 18) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (format === 'decimalExponent') return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  return `${mantissa}${decimalSuffixes[exponent / 3 + 3] ?? ''}`;
}

function formatBinary(nanos: bigint): string {
  let mantissa = roundAway(nanos, NANOS);
  let power = 0;
  while (mantissa % 1024n === 0n && power < binarySuffixes.length - 1) {
    mantissa /= 1024n;
    power++;
  }
  return `${mantissa}${binarySuffixes[power] ?? ''}`;
}
