/** The source position of a log call. */
export interface Caller {
  readonly file: string;
  readonly line: number;
}

type Entry = (...args: never[]) => unknown;

const frame = /([^/\\()\s]+):(\d+):\d+\)?$/;

/**
 * Returns the position that called `entry`, a function now on the stack. It captures only one frame, which takes a few
 * microseconds, and is called only for records that are written.
 */
export function callerOf(entry: Entry): Caller {
  const limit = Error.stackTraceLimit;
  const holder: { stack?: string } = {};
  Error.stackTraceLimit = 1;
  Error.captureStackTrace(holder, entry);
  const found = frame.exec(holder.stack ?? '');
  Error.stackTraceLimit = limit;
  return found ? { file: found[1] ?? '', line: Number(found[2]) } : { file: '???', line: 1 };
}

/** Verbosity for source files whose base name, without extension, matches a shell pattern. */
export interface VmoduleRule {
  readonly filePattern: string;
  readonly verbosity: number;
}

/** Returns a function from a file to the verbosity of the first matching rule, or undefined. */
export function compileVmodule(rules: readonly VmoduleRule[]): (file: string) => number | undefined {
  const compiled = rules.map((rule) => ({ pattern: globToRegExp(rule.filePattern), level: rule.verbosity }));
  return (file) => {
    const base = file.replace(/\.[^.]*$/, '');
    return compiled.find((rule) => rule.pattern?.test(base))?.level;
  };
}

/** Compiles a pattern of `*`, `?`, `[a-z]`, `[^a-z]` and `\` escapes. Returns undefined when it is malformed. */
function globToRegExp(pattern: string): RegExp | undefined {
  const token = /\*+|\?|\[(\^?)((?:\\.|[^\]\\])+)\]|\\(.)|([^*?[\\])/suy;
  let source = '';
  while (token.lastIndex < pattern.length) {
    const match = token.exec(pattern);
    if (!match) return undefined;
    source += tokenSource(match);
  }
  try {
    return new RegExp(`^(?:${source})$`, 'su');
  } catch {
    // A reversed range such as [z-a] is malformed in both dialects.
    return undefined;
  }
}

function tokenSource([whole, negated, members, escaped, literal]: RegExpExecArray): string {
  if (whole.startsWith('*')) return '[^/]*';
  if (whole === '?') return '[^/]';
  if (members === undefined) return (escaped ?? literal ?? '').replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  // Inside a class, keep only the escapes that a regular expression knows.
  return `[${negated ?? ''}${members.replace(/\\([^\\\]^-])/gu, '$1').replace(/\[/g, '\\[')}]`;
}
