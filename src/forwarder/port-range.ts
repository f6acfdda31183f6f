/** Ports to take from, both ends included. */
export interface PortRange {
  readonly first: number;
  readonly last: number;
}

const maxPort = 65_535;

/**
 * Reads `a-b`, `a+n` (a and n more) or a single port. Undefined means that the system may choose: an empty text, 0 or
 * 0-0. Throws, naming the text, when it is anything else.
 */
export function parsePortRange(text: string): PortRange | undefined {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed === '0' || trimmed === '0-0') return undefined;
  const match = /^(\d{1,6})(?:([-+])(\d{1,6}))?$/.exec(trimmed);
  if (!match) throw new Error(`${JSON.stringify(text)} is not a port range`);
  const first = Number(match[1]);
  const second = Number(match[3] ?? first);
  const last = match[2] === '+' ? first + second : second;
  if (last > maxPort) throw new Error(`port range ${JSON.stringify(text)} ends above ${maxPort}`);
  if (last < first) throw new Error(`port range ${JSON.stringify(text)} ends before it begins`);
  return { first, last };
}
