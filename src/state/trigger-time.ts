const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** Parses an RFC 3339 time to milliseconds since the Unix epoch, with fractions; undefined when it is invalid. */
export function parseTriggerTime(text: string): number | undefined {
  const match = rfc3339.exec(text);
  if (!match) return undefined;
  const field = (i: number) => Number(match[i] ?? 0);
  const day = Date.UTC(field(1), field(2) - 1, field(3));
  // Date.UTC turns 30 February into 1 or 2 March: an existing day reads back as written.
  if (!new Date(day).toISOString().startsWith(text.slice(0, 10))) return undefined;
  if (field(4) > 23 || field(5) > 59 || field(6) > 59 || field(9) > 23 || field(10) > 59) return undefined;
  const minutes = field(4) * 60 + field(5) - (match[8] === '-' ? -1 : 1) * (field(9) * 60 + field(10));
  return day + minutes * 60_000 + (field(6) + Number(`0.${match[7] ?? 0}`)) * 1000;
}
