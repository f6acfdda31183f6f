/** The source position of a log call. */
export interface Caller {
  readonly file: string;
  readonly line: number;
}

type Entry = (...args: never[]) => unknown;

/** Finds the source of an offset in the running file; undefined when it is not known. */
export type Locate = (offset: number) => Caller | undefined;

/**
 * Returns the position that called `entry`, a function now on the stack. It captures only one frame, which takes a few
 * microseconds, and is called only for records that are written. With `locate` it asks V8 for the offset of the call:
 * for a line, V8 would first look for all lines of the bundle.
 */
export function callerOf(entry: Entry, locate?: Locate): Caller {
  const site = callSiteOf(entry);
  const offset = (site as { getPosition?(): number } | undefined)?.getPosition?.();
  const found = offset === undefined ? undefined : locate?.(offset);
  return found ?? { file: baseName(site?.getFileName() ?? '???'), line: site?.getLineNumber() ?? 1 };
}

function callSiteOf(entry: Entry): NodeJS.CallSite | undefined {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const holder: { stack?: unknown } = {};
  Error.stackTraceLimit = 1;
  Error.prepareStackTrace = (_error, sites) => sites;
  Error.captureStackTrace(holder, entry);
  // Prepared when it is first read.
  const sites = holder.stack;
  Error.stackTraceLimit = stackTraceLimit;
  Error.prepareStackTrace = prepareStackTrace;
  return Array.isArray(sites) ? sites[0] : undefined;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
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
