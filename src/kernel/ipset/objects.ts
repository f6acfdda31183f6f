import type { Family } from '../../model/ip.ts';

/** The kinds of set that kube-proxy uses. */
export type SetType = 'hash:ip' | 'hash:ip,port' | 'hash:ip,port,ip' | 'hash:ip,port,net' | 'bitmap:port';

/** A set as it is to be made. */
export type SetDefinition = HashSet | PortBitmap;

export interface HashSet {
  /** At most 31 bytes. */
  readonly name: string;
  readonly type: Exclude<SetType, 'bitmap:port'>;
  readonly family: Family;
  /** What the kernel begins with; it grows by itself. */
  readonly hashSize: number;
  /** How many entries it may have. */
  readonly maxElements: number;
}

/** A bit for every port of a range. */
export interface PortBitmap {
  readonly name: string;
  readonly type: 'bitmap:port';
  readonly from: number;
  readonly to: number;
}

/** A set as the kernel reports it. */
export interface ListedSet {
  readonly name: string;
  /** A type of `SetType`, or any other that somebody gave a set of this name. */
  readonly type: string;
  /** Undefined for sets without addresses. */
  readonly family: Family | undefined;
  /** How many rules refer to it; such a set cannot be destroyed. */
  readonly references: number;
  /** Canonical texts; see entry.ts. */
  readonly entries: readonly string[];
}
