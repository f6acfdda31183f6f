export type Environment = Readonly<Record<string, string | undefined>>;

/** Where the program writes, and its exit code. */
export interface Terminal {
  readonly stdout: Output;
  readonly stderr: Pick<Output, 'write'>;
  readonly env: Environment;
  exitCode?: number | string | null | undefined;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  /** Lines of the terminal. */
  readonly rows?: number | undefined;
  readonly columns?: number | undefined;
}

/** Exit codes, which scripts may rely on. */
export const EXIT_OK = 0;
/** Wrong usage, or no answer. */
export const EXIT_ERROR = 1;
/** The proxy is unhealthy, or the kernel differs from its decisions. */
export const EXIT_DIFFERS = 2;
export type ExitCode = typeof EXIT_OK | typeof EXIT_ERROR | typeof EXIT_DIFFERS;

const codes = { bold: 1, red: 31, green: 32, yellow: 33, grey: 90 } as const;
export type Style = keyof typeof codes;
export type Paint = (style: Style, text: string) => string;

/** Paints on a terminal unless NO_COLOR is set and not empty; does not paint in a pipe. */
export function painter({ stdout, env }: Terminal): Paint {
  const isColoured = stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb';
  return isColoured
    ? (style, text) => `${sequence(codes[style])}${text}${sequence(0)}`
    : (_style, text) => text;
}

function sequence(code: number): string {
  return `\u001b[${code}m`;
}

const sequences = new Set([0, ...Object.values(codes)].map(sequence));

/** Makes text of others safe on a terminal: control characters become `?`, except in the sequences of the painter. */
export function harmless(text: string): string {
  if (!/\p{Cc}/u.test(text)) return text;
  return text.replace(/\p{Cc}(?:\[\d+m)?/gu, (found) =>
    sequences.has(found) ? found : `?${found.slice(1)}`,
  );
}
