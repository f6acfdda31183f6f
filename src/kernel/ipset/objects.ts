import type { Family } from '../../model/ip.ts';

/** The kinds of set that kube-proxy uses. */
export type SetType = 'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'bitmap:port';

/** A set to create. */
export type SetDefinition = HashSet | PortBitmap;

export interface HashSet {
  /** At most 31 bytes. */
  readonly name: string;
  readonly type: Exclude<SetType, 'bitmap:port'>;
  readonly family: Family;
  /** Initial size of the hash table, which grows as needed. */
  readonly hashSize: number;
  /** Maximum number of entries. */
  readonly maxElements: number;
}

/** A set with one bit per port of a range. */
export interface PortBitmap {
  readonly name: string;
  readonly type: 'bitmap:port';
  readonly from: number;
  readonly to: number;
}

/** A set as the kernel reports it. */
export interface ListedSet {
  readonly name: string;
  /** A `SetType`, or another type when another program created the set. */
  readonly type: string;
  /** Undefined for sets without addresses. */
  readonly family: Family | undefined;
  /** Number of rules that refer to the set. The kernel does not destroy a set with references. */
  readonly references: number;
  /** Canonical texts (entry.ts). */
  readonly entries: readonly string[];
}
