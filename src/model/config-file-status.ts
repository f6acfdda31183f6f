import type { Problem } from './problem.ts';

/** The configuration that a program uses. Times are milliseconds since the Unix epoch. */
export interface GenerationStatus {
  /** 1 from the start on, one more with every change that was applied. */
  readonly generation: number;
  /** When it came into use. */
  readonly since: number;
  /** The last usable change of the file since the start. */
  readonly lastChange?: LastConfigChange;
}

export interface LastConfigChange {
  readonly at: number;
  /** `RestartNeeded`: the program is about to end, to be restarted with it. */
  readonly outcome: 'Applied' | 'Rejected' | 'RestartNeeded';
  /** Paths in the file, `nftables.masqueradeAll`; with `RestartNeeded`, those that need the restart. */
  readonly fields: readonly string[];
  /** Why it was not applied. */
  readonly reason?: string;
}

/** The configuration file that a program was started with. Times are milliseconds since the Unix epoch. */
export interface ConfigFileStatus {
  readonly path: string;
  /** SHA-256 of the content in use, in hexadecimal digits. */
  readonly hash: string;
  /** When the content in use was read. */
  readonly readAt: number;
  readonly onDisk: ConfigOnDisk;
}

/** The file, and the configuration in use. */
export interface ConfigurationStatus extends ConfigFileStatus {
  readonly inUse: GenerationStatus;
}

/** What the path leads to now. */
export interface ConfigOnDisk {
  /**
   * `InUse`: the content in use. `Changed`: another usable content; the program is about to end, to be restarted with it.
   * `Rejected`: another valid content, which this node could not use. `Unusable`: a restart would fail. `Unknown`: a
   * pipe, or a file that cannot be watched.
   */
  readonly state: 'InUse' | 'Changed' | 'Rejected' | 'Unusable' | 'Unknown';
  /** Since when it is known to be in this state. */
  readonly since: number;
  /** Why it is not in use, or not known to be. */
  readonly reason: string | undefined;
}

/** Tells that the file on disk is not in use, and why. */
export function configProblems(file: ConfigFileStatus | undefined): Problem[] {
  if (!file) return [];
  const { state, since, reason = '' } = file.onDisk;
  // Errors of the decoder may have several lines.
  const why = reason.replace(/\s*\n\s*/g, ' ');
  if (state === 'Unusable') {
    const text = `the configuration file ${file.path} cannot be used, so a restart would fail: ${why}`;
    return [{ kind: 'ConfigFileUnusable', since, isOutage: false, text }];
  }
  if (state === 'Rejected') {
    const text = `the configuration file ${file.path} was rejected, the former configuration is in use: ${why}`;
    return [{ kind: 'ConfigurationRejected', since, isOutage: false, text }];
  }
  return [];
}
