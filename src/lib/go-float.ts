/** The shortest decimal that reads back as the same 32-bit float: 0.1, not 0.10000000149011612. */
export function shortestFloat32(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return Number(value.toPrecision(9));
}

/** Go's `%g` of a number: `1e-05`, `0.0001`, `999999`, `1e+06`. */
export function formatFloat(value: number): string {
  const [mantissa = '', exponentText = ''] = value.toExponential().split('e');
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(value);
  return `${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}
