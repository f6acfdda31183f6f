/**
 * The expressions of a rule: one small immutable node per kind, in the vocabulary of `nft --debug=netlink`. They run in
 * order; a comparison that fails ends the rule. Write nodes as plain literals.
 */

/**
 * A register, counted in 32-bit words from 0 to 15. A longer value takes the following words too: an address at word 0
 * and a port after it make a concatenated key. Kernels from 6.x on refuse a rule that reads a word which it did not
 * write.
 */
export type Register = number;

export type PayloadBase = 'link' | 'network' | 'transport';
export type MetaKey =
  | 'protocol'
  | 'mark'
  | 'priority'
  | 'iif'
  | 'oif'
  | 'iifname'
  | 'oifname'
  | 'nfproto'
  | 'l4proto';
export type CtKey = 'state' | 'direction' | 'status' | 'mark' | 'l3protocol' | 'protocol' | 'packets';
/** What conntrack knows of the original direction: addresses as the first sender sent them, before any rewriting. */
export type CtOriginalKey = 'saddr' | 'saddr6' | 'sport' | 'zone';
export type CmpOp = 'eq' | 'neq' | 'lt' | 'lte' | 'gt' | 'gte';
export type FibFlag = 'saddr' | 'daddr' | 'mark' | 'iif' | 'oif' | 'present';
export type FibResult = 'oif' | 'oifname' | 'type';
export type NatFlag = 'random' | 'fully-random' | 'persistent';
export type LimitFlag = 'over';
export type RejectType = 'icmp-unreach' | 'tcp-reset' | 'icmpx-unreach';

/** What a rule decides about a packet. The packet returns from a `jump` but not from a `goto`. */
export type Verdict =
  | { readonly kind: 'accept' | 'drop' | 'continue' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

/** Loads packet bytes, in network byte order. */
export interface PayloadExpr {
  readonly kind: 'payload';
  readonly base: PayloadBase;
  readonly offset: number;
  readonly length: number;
  readonly dreg: Register;
}

/**
 * Writes a register into the packet. Checksums stay as they are, unless the node says otherwise: `headerChecksum` is the
 * offset of the checksum that this header has, and `updatesTransport` is for addresses, which the checksums of TCP, UDP
 * and ICMPv6 cover.
 */
export interface PayloadSetExpr {
  readonly kind: 'payload-set';
  readonly base: PayloadBase;
  readonly offset: number;
  readonly length: number;
  readonly sreg: Register;
  readonly headerChecksum?: number;
  readonly updatesTransport?: true;
}

/** Loads metadata: l4proto and nfproto 1 byte, protocol 2, names 16; mark, priority and indexes 4 in host order. */
export interface MetaExpr {
  readonly kind: 'meta';
  readonly key: MetaKey;
  readonly dreg: Register;
}

/** Sets metadata from a register: one byte for nftrace, which makes the kernel trace the packet, else four. */
export interface MetaSetExpr {
  readonly kind: 'meta-set';
  readonly key: 'mark' | 'priority' | 'nftrace';
  readonly sreg: Register;
}

/** Loads facts about the connection; `packets`, of both directions, as 8 bytes in host order. */
export interface CtExpr {
  readonly kind: 'ct';
  readonly key: CtKey;
  readonly dreg: Register;
}

/**
 * Loads a field of the original direction: an address or a port in network byte order, or the zone, two bytes in host
 * order. From kernel 4.17.
 */
export interface CtOriginalExpr {
  readonly kind: 'ct-original';
  readonly key: CtOriginalKey;
  readonly dreg: Register;
}

/**
 * Sets the zone of the original direction from a register, two bytes in host order. No effect on packets that conntrack
 * knows already. Conntrack keeps this connection apart from another one with the same addresses, and changes the port of
 * one of them if their answers would be ambiguous.
 */
export interface CtSetExpr {
  readonly kind: 'ct-set';
  readonly key: 'zone';
  readonly sreg: Register;
}

export interface CmpExpr {
  readonly kind: 'cmp';
  readonly op: CmpOp;
  readonly sreg: Register;
  readonly value: Uint8Array;
}

/** Matches inside (eq) or outside (neq) the closed range. */
export interface RangeExpr {
  readonly kind: 'range';
  readonly op: 'eq' | 'neq';
  readonly sreg: Register;
  readonly from: Uint8Array;
  readonly to: Uint8Array;
}

/** dreg = (sreg & mask) ^ xor; the three lengths are the same. */
export interface BitwiseExpr {
  readonly kind: 'bitwise';
  readonly sreg: Register;
  readonly dreg: Register;
  readonly mask: Uint8Array;
  readonly xor: Uint8Array;
}

export interface ByteorderExpr {
  readonly kind: 'byteorder';
  readonly op: 'ntoh' | 'hton';
  readonly sreg: Register;
  readonly dreg: Register;
  readonly length: number;
  /** Bytes per swapped unit: 2, 4 or 8. */
  readonly size: number;
}

/**
 * Looks up a key in a set or map of the same table. Without `dreg` it only matches, which kernels before 6.5 refuse for
 * maps. `dreg: 'verdict'` executes the verdict found. `setId` identifies a set with an automatic name that the same
 * batch creates.
 */
export interface LookupExpr {
  readonly kind: 'lookup';
  readonly set: string;
  readonly setId?: number;
  readonly sreg: Register;
  readonly dreg?: Register | 'verdict';
  readonly inverse?: boolean;
}

export interface ImmediateExpr {
  readonly kind: 'immediate';
  readonly dreg: Register;
  readonly value: Uint8Array;
}

export interface VerdictExpr {
  readonly kind: 'verdict';
  readonly verdict: Verdict;
}

export interface FibExpr {
  readonly kind: 'fib';
  readonly flags: readonly FibFlag[];
  readonly result: FibResult;
  readonly dreg: Register;
}

/** A number in offset..offset+modulus-1, 4 bytes in host order. */
export interface NumgenExpr {
  readonly kind: 'numgen';
  readonly type: 'random' | 'inc';
  readonly modulus: number;
  readonly offset?: number;
  readonly dreg: Register;
}

/** A number in offset..offset+modulus-1, 4 bytes in host order, that depends only on `length` bytes from `sreg` on. */
export interface HashExpr {
  readonly kind: 'hash';
  readonly type: 'jenkins';
  readonly sreg: Register;
  readonly length: number;
  readonly seed: number;
  readonly modulus: number;
  readonly offset?: number;
  readonly dreg: Register;
}

export interface NatExpr {
  readonly kind: 'nat';
  readonly type: 'dnat' | 'snat';
  readonly family: 'ip' | 'ip6';
  readonly addr?: Register;
  readonly addrMax?: Register;
  readonly port?: Register;
  readonly portMax?: Register;
  readonly flags?: readonly NatFlag[];
}

export interface MasqExpr {
  readonly kind: 'masq';
  readonly flags?: readonly NatFlag[];
}

export interface RejectExpr {
  readonly kind: 'reject';
  readonly type: RejectType;
  /** ICMP code: 3 is port unreachable in IPv4, 4 in IPv6. */
  readonly code: number;
}

/** An anonymous counter; its start values are 0 unless given. */
export interface CounterExpr {
  readonly kind: 'counter';
  readonly packets?: bigint;
  readonly bytes?: bigint;
}

/** Matches `burst` packets, and `rate` more per unit of time; with `over`, packets beyond that. */
export interface LimitExpr {
  readonly kind: 'limit';
  readonly rate: bigint;
  readonly unitSeconds: bigint;
  readonly burst: number;
  readonly counts: 'packets';
  readonly flags?: readonly LimitFlag[];
}

/** Refers to a named counter of the same table. */
export interface ObjrefExpr {
  readonly kind: 'objref';
  readonly type: 'counter';
  readonly name: string;
}

/** Adds the key (and data) in the registers to a dynamic set; `update` also restarts the timeout. */
export interface DynsetExpr {
  readonly kind: 'dynset';
  readonly op: 'add' | 'update' | 'delete';
  readonly set: string;
  readonly setId?: number;
  readonly key: Register;
  readonly data?: Register;
  readonly timeoutMs?: number;
}

/** Puts the packet's connection into a flowtable of the same table; ends the rule when that is not possible. */
export interface FlowOffloadExpr {
  readonly kind: 'flow_offload';
  readonly flowtable: string;
}

/** An expression read from the kernel that this program does not write, in this form or at all. */
export interface UnknownExpr {
  readonly kind: 'unknown';
  readonly name: string;
  /** The attributes inside NFTA_EXPR_DATA. */
  readonly data: Uint8Array;
}

export type Expr =
  | PayloadExpr
  | PayloadSetExpr
  | MetaExpr
  | MetaSetExpr
  | CtExpr
  | CtOriginalExpr
  | CtSetExpr
  | CmpExpr
  | RangeExpr
  | BitwiseExpr
  | ByteorderExpr
  | LookupExpr
  | ImmediateExpr
  | VerdictExpr
  | FibExpr
  | NumgenExpr
  | HashExpr
  | NatExpr
  | MasqExpr
  | RejectExpr
  | CounterExpr
  | LimitExpr
  | ObjrefExpr
  | DynsetExpr
  | FlowOffloadExpr
  | UnknownExpr;
