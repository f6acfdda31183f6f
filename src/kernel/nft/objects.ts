import type { Expr, Verdict } from './expr.ts';
import type { Field } from './fields.ts';

/** The nouns of nf_tables, as `nft` names them. A …Ref identifies an object. */

export type NftFamily = 'ip' | 'ip6' | 'inet' | 'arp' | 'bridge' | 'netdev';

export interface TableRef {
  readonly family: NftFamily;
  readonly name: string;
}

export interface Table extends TableRef {
  /**
   * The table belongs to the socket that adds it: only this socket may change it, and the kernel deletes it when the
   * socket closes, also when the process is killed. Kernels before 5.12 refuse it.
   */
  readonly isOwned?: boolean;
  readonly comment?: string;
}

export type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

export interface BaseChain {
  readonly type: 'filter' | 'nat' | 'route';
  readonly hook: Hook;
  readonly priority: number;
  /** The kernel's default, accept, when absent. */
  readonly policy?: 'accept' | 'drop';
}

export interface ChainRef {
  readonly table: TableRef;
  readonly name: string;
}

export interface Chain extends ChainRef {
  /** Present for base chains: those attached to a hook. */
  readonly base?: BaseChain;
  readonly comment?: string;
}

export interface Rule {
  readonly chain: ChainRef;
  readonly exprs: readonly Expr[];
  /** At most 128 bytes; nft shows it. */
  readonly comment?: string;
}

/** One rule of a chain. The kernel never gives its number to another rule of the table. */
export interface RuleRef {
  readonly chain: ChainRef;
  readonly handle: bigint;
}

/** A rule without what it matches: which one it is, and the chain that it jumps or goes to, if any. */
export interface RuleTarget extends RuleRef {
  readonly to: string | undefined;
}

/** A rule as the kernel lists it. `nft -a list ruleset` shows its handle. */
export interface ListedRule extends Rule, RuleRef {
  readonly chain: ChainRef;
}

export type SetFlag = 'anonymous' | 'constant' | 'interval' | 'timeout' | 'dynamic';

export interface SetRef {
  readonly table: TableRef;
  readonly name: string;
  /** Refers to a set with an automatic name (`__set%d`, `__map%d`) within its batch. */
  readonly id?: number;
}

/** A set, or with `data` a map. `key` and `data` list the fields of a concatenation; a plain type has one field. */
export interface NftSet extends SetRef {
  readonly key: readonly Field[];
  readonly data?: readonly Field[] | 'verdict';
  readonly flags?: readonly SetFlag[];
  /** Maximum number of elements. A dynamic set without a size holds 65,535. */
  readonly size?: number;
  readonly timeoutMs?: number;
  readonly gcIntervalMs?: number;
  readonly comment?: string;
}

/** A set as the kernel reports it. Types are nft's numbers, because another program's set may have any type. */
export interface SetInfo extends SetRef {
  readonly flags: readonly SetFlag[];
  readonly keyType: number;
  readonly keyLength: number;
  /** Absent for sets. */
  readonly dataType?: number;
  /** Absent for sets and verdict maps. */
  readonly dataLength?: number;
  readonly size?: number;
  readonly timeoutMs?: number;
  readonly gcIntervalMs?: number;
  readonly comment?: string;
}

/**
 * One element. `key`, `keyEnd` and `data` are concatenated fields, each padded to 4 bytes. A range in a set with several
 * key fields is one element, whose `keyEnd` is the last key of the range. A range in an interval set with one field is
 * two elements: the second has `intervalEnd` and the first key *after* the range.
 */
export interface Element {
  readonly key: Uint8Array;
  readonly keyEnd?: Uint8Array;
  readonly intervalEnd?: boolean;
  readonly data?: Uint8Array;
  readonly verdict?: Verdict;
  readonly timeoutMs?: number;
  /** Time left. When written, the element expires earlier than its timeout. */
  readonly expiresMs?: number;
  /** At most 128 bytes; nft shows it. */
  readonly comment?: string;
  /** What the kernel counted for it; never written. */
  readonly counted?: Counted;
}

export interface FlowtableRef {
  readonly table: TableRef;
  readonly name: string;
}

/**
 * Connections that skip the rules: their packets that arrive on one of the devices are forwarded at once. Adding a
 * flowtable that exists adds its devices; deleting one with `devices` deletes only these.
 */
export interface Flowtable extends FlowtableRef {
  /** Of the ingress hook. */
  readonly priority: number;
  /** Names; at most 256 in one operation. Kernels before 6.16 refuse names of devices that do not exist. */
  readonly devices: readonly string[];
  /** Connection tracking counts the packets on this way. Adding devices sets this flag, too. */
  readonly isCounted: boolean;
}

/** Exact up to 2^53. */
export interface Counted {
  readonly packets: number;
  readonly bytes: number;
}

export interface Counter {
  readonly table: TableRef;
  readonly name: string;
  readonly packets?: bigint;
  readonly bytes?: bigint;
  readonly comment?: string;
}
