import type { NftBatch } from './batch.ts';
import type { NftEventListener } from './events.ts';
import type {
  Chain,
  Counter,
  Element,
  Flowtable,
  Rule,
  RuleTarget,
  SetInfo,
  SetRef,
  Table,
  TableRef,
} from './objects.ts';

/** The result of a successful commit. */
export interface CommitResult {
  /** The ruleset generation after this commit; undefined when the batch was empty. */
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
   * Accepts a dump that has elements twice or lacks some. For a set that packets add to, no exact dump may ever
   * succeed: every new element shifts the position of others.
   */
  readonly isApproximate?: boolean;
}

/**
 * nf_tables in this network namespace. Every method rejects with NftError when the kernel refuses. Lists are
 * consistent: a list that a commit disturbed is read again.
 */
export interface NftClient {
  /** Port id of the socket that commits. Events with this port are our own. */
  readonly portId: number;

  /**
   * Applies a batch as one transaction: all of it or nothing. Rejects with an NftError that names every failure. Our
   * own commits to other tables do not invalidate the generation that the batch expects.
   */
  commit(batch: NftBatch): Promise<CommitResult>;

  /** Lets the kernel validate a batch without applying it. Rejects as `commit` does. */
  check(batch: NftBatch): Promise<void>;

  generation(): Promise<Generation>;
  /** Undefined when there is no such table. */
  getTable(table: TableRef): Promise<Table | undefined>;
  /** Empty when there is no such table. */
  listChains(table: TableRef): Promise<Chain[]>;
  /** Rules in order, of one chain or of all. Empty when there is no such table or chain. */
  listRules(table: TableRef, chain?: string): Promise<Rule[]>;
  /** The rules of a table without their expressions, in order. Empty when there is no such table. */
  listRuleTargets(table: TableRef): Promise<RuleTarget[]>;
  /** Empty when there is no such table. */
  listSets(table: TableRef): Promise<SetInfo[]>;

  /**
   * Streams the elements of a set, some hundreds per call. A disturbed dump starts again: `onElements` is then called
   * with `restarted` true, and the caller forgets all elements so far. After ten disturbed attempts it rejects with
   * EINTR. The kernel's time grows with the square of the set's size: 0.3 s for 100,000 elements, 10 s for 500,000.
   */
  listElements(
    set: SetRef,
    onElements: (elements: readonly Element[], restarted: boolean) => void,
    options?: ListElementsOptions,
  ): Promise<void>;

  /**
   * The element that a packet with this key would find; in an interval set, the element that begins the range.
   * Undefined when there is no such element or set.
   */
  getElement(set: SetRef, key: Uint8Array): Promise<Element | undefined>;

  /** Named counters. Empty when there is no such table. */
  listCounters(table: TableRef): Promise<Counter[]>;

  /** Empty when there is no such table. */
  listFlowtables(table: TableRef): Promise<Flowtable[]>;

  /** Subscribes to changes by other programs. The kernel filters out our own commits. */
  subscribe(listener: NftEventListener): Subscription;

  close(): void;
}
