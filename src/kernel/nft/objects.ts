import type { Expr, Verdict } from './expr.ts';
import type { Field } from './fields.ts';

/** The nouns of nf_tables, as `nft` names them. References are the part that identifies an object. */

export type NftFamily = 'ip' | 'ip6' | 'inet' | 'arp' | 'bridge' | 'netdev';

export interface TableRef {
  readonly family: NftFamily;
  readonly name: string;
}

export interface Table extends TableRef {
  readonly comment?: string;
  readonly handle?: bigint;
}

export type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

export interface BaseChain {
  readonly type: 'filter' | 'nat' | 'route';
  readonly hook: Hook;
  readonly priority: number;
  /** Left to the kernel (accept) when absent. */
  readonly policy?: 'accept' | 'drop';
}

export interface ChainRef {
  readonly table: TableRef;
  readonly name: string;
}

export interface Chain extends ChainRef {
  /** Present for chains that are attached to a hook. */
  readonly base?: BaseChain;
  readonly comment?: string;
  readonly handle?: bigint;
}

export interface RuleRef {
  readonly chain: ChainRef;
  readonly handle: bigint;
}

export interface Rule {
  readonly chain: ChainRef;
  readonly exprs: readonly Expr[];
  /** At most 128 bytes; nft shows it. */
  readonly comment?: string;
  readonly handle?: bigint;
  /** Handle of the rule to add behind, or to insert before. */
  readonly position?: bigint;
}

export type SetFlag = 'anonymous' | 'constant' | 'interval' | 'timeout' | 'dynamic';

export interface SetRef {
  readonly table: TableRef;
  readonly name: string;
  /** Needed only for a set with an automatic name (`__set%d`, `__map%d`), to refer to it within its batch. */
  readonly id?: number;
}

/** A set, or with `data` a map. `key` and `data` list the fields of the concatenation, one for a plain type. */
export interface NftSet extends SetRef {
  readonly key: readonly Field[];
  readonly data?: readonly Field[] | 'verdict';
  readonly flags?: readonly SetFlag[];
  /** Most elements it may hold. A dynamic set without a size holds 65,535. */
  readonly size?: number;
  readonly timeoutMs?: number;
  readonly gcIntervalMs?: number;
  readonly comment?: string;
}

/** A set as the kernel reports it: types as nft's numbers, because a foreign set may have any. */
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
  readonly handle?: bigint;
}

/**
 * One element. `key` (and `keyEnd`, `data`) are the concatenated fields, each padded to 4 bytes. Ranges: in a set
 * with more than one key field, `keyEnd` is the last key included; in a single-field interval set the kernel keeps
 * two elements, the second with `intervalEnd` and the first key *behind* the range.
 */
export interface Element {
  readonly key: Uint8Array;
  readonly keyEnd?: Uint8Array;
  readonly intervalEnd?: boolean;
  readonly data?: Uint8Array;
  readonly verdict?: Verdict;
  readonly timeoutMs?: number;
  /** Time left; written, it makes an element die earlier than its timeout. */
  readonly expiresMs?: number;
  /** At most 128 bytes; nft shows it. */
  readonly comment?: string;
}

export interface CounterRef {
  readonly table: TableRef;
  readonly name: string;
}

export interface Counter extends CounterRef {
  readonly packets?: bigint;
  readonly bytes?: bigint;
  readonly comment?: string;
  readonly handle?: bigint;
}
