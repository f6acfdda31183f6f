const context = 3;

/** The lines of restore input around the one that an error of iptables-restore names; none when it names none. */
export function linesAround(input: string, message: string): readonly string[] {
  const named = Number(/\bline:? (\d+)/.exec(message)?.[1]);
  if (!Number.isSafeInteger(named) || named < 1) return [];
  return input.split('\n').slice(Math.max(0, named - 1 - context), named + context);
}
