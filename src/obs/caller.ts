/** Where a log call stands in the source. */
export interface Caller {
  readonly file: string;
  readonly line: number;
}

type Entry = (...args: never[]) => unknown;

const frame = /([^/\\()\s]+):(\d+):\d+\)?$/;

/**
 * The place that called `entry`, a function now on the stack. Only one frame is captured, which keeps it to a
 * few microseconds; a record that is not written never comes here.
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

/** Returns the verbosity for a file, the first matching rule's; undefined when none matches. */
export function compileVmodule(rules: readonly VmoduleRule[]): (file: string) => number | undefined {
  const compiled = rules.map((rule) => ({ pattern: globToRegExp(rule.filePattern), level: rule.verbosity }));
  return (file) => {
    const base = file.replace(/\.[^.]*$/, '');
    return compiled.find((rule) => rule.pattern?.test(base))?.level;
  };
}

/** A pattern of `*`, `?`, `[a-z]`, `[^a-z]` and `\` escapes; undefined when malformed: it then matches nothing. */
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
  // Inside a class an escape stays an escape where a regular expression knows it and loses it elsewhere.
  return `[${negated ?? ''}${members.replace(/\\([^\\\]^-])/gu, '$1').replace(/\[/g, '\\[')}]`;
}
