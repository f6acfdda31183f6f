export type TableName = 'filter' | 'nat';

/** Which nfacct counters exist, so that rules may name them. */
export interface Counters {
  /** `ct_state_invalid_dropped_pkts` */
  readonly invalidDropped: boolean;
  /** `localhost_nps_accepted_pkts` */
  readonly localhostAccepted: boolean;
}

/** The tables of one family, as the sync engine uses them. Calls never overlap. */
export interface Tables {
  /**
   * How many service chains one restore should declare at most, where several small restores cost less than a large
   * one. Programs that stand on nf_tables take time with the square of the chains, and none for what the input does not
   * mention: with 2000, they write 5,000 services of 3 endpoints in a quarter of the time. Unlimited when absent: those
   * that stand on x_tables rewrite the whole table every time.
   */
  readonly chainsPerRestore?: number;
  /**
   * Looks for the jumps from built-in chains. The next restore makes those that are missing, with their chains, before its
   * input, and throws when one cannot be made. Resolves to all chains that nat has, ours or not.
   */
  ensureJumps(): Promise<ReadonlySet<string>>;
  /** Never throws: a counter that cannot be had is reported as absent. */
  ensureCounters(): Promise<Counters>;
  /**
   * Applies restore input, without flushing what it does not mention; each table is committed by itself, in the order
   * given. The chunks are joined as they are and may break a line anywhere. The input may be read again, and need not be
   * read to its end, when the program fails. Throws `RestoreError` when the input was refused, and anything
   * else when it was not judged at all: no lock within the time allowed, no such program, killed.
   */
  restore(input: Iterable<string>): Promise<void>;
}

/** iptables-restore refused its input. Tables before the one it complains about have been committed. */
export class RestoreError extends Error {
  readonly code = 'IPTABLES_RESTORE';
  /** The line of the input, counted from 1, that it complains about; a COMMIT line says nothing about the cause. */
  readonly line: number | undefined;

  /** `message` is what the program printed. */
  constructor(message: string, line?: number) {
    super(message);
    this.name = 'RestoreError';
    this.line = line;
  }
}
