import type { Problem } from './problem.ts';

/** The configuration file that a program was started with. Times are milliseconds since the Unix epoch. */
export interface ConfigFileStatus {
  readonly path: string;
  /** SHA-256 of the content in use, in hexadecimal digits. */
  readonly hash: string;
  /** When the content in use was read. */
  readonly readAt: number;
  readonly onDisk: ConfigOnDisk;
}

/** What the path leads to now. */
export interface ConfigOnDisk {
  /**
   * `InUse`: the content in use. `Changed`: another usable content; the program is about to end, to be restarted with it.
   * `Unusable`: a restart would fail. `Unknown`: a pipe, or a file that cannot be watched.
   */
  readonly state: 'InUse' | 'Changed' | 'Unusable' | 'Unknown';
  /** Since when it is known to be in this state. */
  readonly since: number;
  /** Why it is unusable or unknown. */
  readonly reason: string | undefined;
}

/** Tells that the next restart would fail, if it would. */
export function configProblems(file: ConfigFileStatus | undefined): Problem[] {
  if (file?.onDisk.state !== 'Unusable') return [];
  const { since, reason = '' } = file.onDisk;
  // Errors of the decoder may have several lines.
  const text = `the configuration file ${file.path} cannot be used, so a restart would fail: ${reason.replace(/\s*\n\s*/g, ' ')}`;
  return [{ kind: 'ConfigFileUnusable', since, isOutage: false, text }];
}
