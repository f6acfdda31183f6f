/** Go's zero time, which stands for "never". */
export const zeroTime = '0001-01-01T00:00:00Z';

/** Minutes east of UTC in the local zone at a moment. */
function localOffset(ms: number): number {
  return -new Date(ms).getTimezoneOffset();
}

/**
 * A moment as Go's RFC3339Nano prints it: local time with its offset (`Z` for UTC), the fraction without
 * trailing zeros.
 */
export function formatRFC3339(ms: number, offsetMinutes = localOffset(ms)): string {
  const text = new Date(ms + offsetMinutes * 60_000).toISOString().slice(0, -1);
  return text.replace(/\.?0+$/, '') + zone(offsetMinutes);
}

function zone(offsetMinutes: number): string {
  if (offsetMinutes === 0) return 'Z';
  const size = Math.abs(offsetMinutes);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${offsetMinutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}
