import type { NftBatch } from './batch.ts';
import type { NftEventListener } from './events.ts';
import type {
  Chain,
  Counter,
  Element,
  NftFamily,
  Rule,
  SetInfo,
  SetRef,
  Table,
  TableRef,
} from './objects.ts';

/** What a successful commit amounted to. */
export interface CommitResult {
  /** The ruleset generation that this commit made; undefined when the batch was empty. */
  readonly generation: number | undefined;
  /** Size of the transaction on the wire. */
  readonly bytes: number;
}

/** The current ruleset generation and the process that made it. */
export interface Generation {
  readonly id: number;
  readonly pid: number;
  readonly processName: string;
}

export interface Subscription {
  close(): void;
}

export interface ListElementsOptions {
  /**
   * Takes a dump in which elements come twice, and others not at all. A set that packets add to is never dumped
   * otherwise: every new element moves those behind it.
   */
  readonly isApproximate?: boolean;
}

/**
 * nf_tables in this network namespace. Every method rejects with NftError when the kernel refuses. Lists are
 * consistent: one that was disturbed by a commit is read again.
 */
export interface NftClient {
  /** Port id of the socket that commits: events that carry it are our own. */
  readonly portId: number;

  /**
   * Applies a batch as one transaction: all of it or nothing. Rejects with an NftError that names every failure. Own
   * commits to other tables do not count against a generation that the batch expects.
   */
  commit(batch: NftBatch): Promise<CommitResult>;

  /** Has the kernel validate a batch without applying it. Rejects as `commit` does. */
  check(batch: NftBatch): Promise<void>;

  generation(): Promise<Generation>;
  listTables(family?: NftFamily): Promise<Table[]>;
  /** Undefined when there is no such table. */
  getTable(table: TableRef): Promise<Table | undefined>;
  /** Empty when there is no such table. */
  listChains(table: TableRef): Promise<Chain[]>;
  /** Rules in order, of one chain or of all. Empty when there is no such table or chain. */
  listRules(table: TableRef, chain?: string): Promise<Rule[]>;
  /** Empty when there is no such table. */
  listSets(table: TableRef): Promise<SetInfo[]>;

  /**
   * Streams the elements of a set, some hundreds per call. A disturbed dump starts again from the beginning:
   * `onElements` is then called with `restarted` true, and what came before is to be forgotten. After five disturbed
   * attempts it rejects with EINTR. The kernel's effort grows with the square of the set's size: 100,000 elements
   * take it a third of a second, 500,000 ten.
   */
  listElements(
    set: SetRef,
    onElements: (elements: readonly Element[], restarted: boolean) => void,
    options?: ListElementsOptions,
  ): Promise<void>;

  /**
   * The element that a packet with this key would find, in an interval set the one that begins the range. Undefined when
   * there is none, or no such set.
   */
  getElement(set: SetRef, key: Uint8Array): Promise<Element | undefined>;

  /** Named counters; with `reset` they are zeroed as they are read. Empty when there is no such table. */
  listCounters(table: TableRef, options?: { readonly reset?: boolean }): Promise<Counter[]>;

  /** Follows changes made by others. Our own commits are filtered out by the kernel. */
  subscribe(listener: NftEventListener): Subscription;

  close(): void;
}
