import type { AttributeMap } from '../../netlink/attribute-map.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { familyNumbers, NFT_OBJECT_COUNTER, NFTA_COUNTER } from '../constants.ts';
import type { BitwiseExpr, Expr, LookupExpr, Verdict } from '../expr.ts';
import { readVerdict, registerWord, writeRegister, writeVerdict } from './data.ts';
import * as p from './property.ts';

/**
 * Every expression that this program writes: its properties in the order of nft, and their attribute numbers, which
 * linux/netfilter/nf_tables.h calls NFTA_PAYLOAD_DREG and so on.
 */

const payloadBases = { link: 0, network: 1, transport: 2 } as const;
const metaKeys = {
  protocol: 1,
  priority: 2,
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  nfproto: 15,
  l4proto: 16,
} as const;
const settableMetaKeys = { priority: 2, mark: 3, nftrace: 12 } as const;
const ctKeys = {
  state: 0,
  direction: 1,
  status: 2,
  mark: 3,
  l3protocol: 7,
  protocol: 10,
  packets: 14,
} as const;
const ctOriginalKeys = { sport: 11, zone: 17, saddr: 19, saddr6: 21 } as const;
const cmpOps = { eq: 0, neq: 1, lt: 2, lte: 3, gt: 4, gte: 5 } as const;
const rangeOps = { eq: 0, neq: 1 } as const;
const byteorderOps = { ntoh: 0, hton: 1 } as const;
const fibResults = { oif: 1, oifname: 2, type: 3 } as const;
const fibFlags = { saddr: 1, daddr: 2, mark: 4, iif: 8, oif: 16, present: 32 } as const;
const numgenTypes = { inc: 0, random: 1 } as const;
const natTypes = { snat: 0, dnat: 1 } as const;
const natFamilies = { ip: familyNumbers.ip, ip6: familyNumbers.ip6 } as const;
const natFlags = { random: 4, persistent: 8, 'fully-random': 16 } as const;
const rejectTypes = { 'icmp-unreach': 0, 'tcp-reset': 1, 'icmpx-unreach': 2 } as const;
const dynsetOps = { add: 0, update: 1, delete: 2 } as const;

const BITWISE = { LEN: 3, MASK: 4, OP: 6 } as const;
const BITWISE_BOOL = 0;
const LOOKUP = { DREG: 3, FLAGS: 5 } as const;
const LOOKUP_INVERSE = 1;
const IMMEDIATE = { DREG: 1, DATA: 2 } as const;
const CT = { KEY: 2, DIRECTION: 3 } as const;
const ORIGINAL = 0;
const CHECKSUM = { TYPE: 6, OFFSET: 7, FLAGS: 8 } as const;
const CHECKSUM_INET = 1;
const CHECKSUM_OF_TRANSPORT = 1;
const MASQ_PORTS: readonly number[] = [2, 3];
const DYNSET_TIMEOUT = 6;
const DYNSET_EXPRS: readonly number[] = [7, 10];
const verdictRegister = 0;

const encoder = new TextEncoder();

/** Any node but `unknown`, which keeps the kernel's bytes. */
type KnownKind = Exclude<Expr['kind'], 'unknown'>;
export type ExprOf<K extends Expr['kind']> = Extract<Expr, { readonly kind: K }>;
type Properties<E> = {
  readonly [K in Exclude<keyof E, 'kind'>]-?: p.Property<Exclude<E[K], undefined>>;
};

export interface ExprCodec<E> {
  write(writer: MessageWriter, expr: E): void;
  /** Undefined for a variant that the node cannot express. */
  read(attributes: AttributeMap): E | undefined;
}

/** Makes a codec. An expression with one of the attributes `beyond` is a variant that the node cannot express. */
function codec<K extends KnownKind>(
  kind: K,
  properties: Properties<ExprOf<K>>,
  beyond: readonly number[] = [],
): ExprCodec<ExprOf<K>> {
  const entries: [string, p.Property<unknown>][] = Object.entries(properties);
  return {
    write(writer, expr) {
      for (const [name, property] of entries) {
        const field: unknown = Reflect.get(expr, name) ?? property.fallback;
        if (field !== undefined) property.write(writer, field);
      }
    },
    read(attributes) {
      if (beyond.some((type) => attributes.has(type))) return undefined;
      const fields: Record<string, unknown> = { kind };
      for (const [name, property] of entries) {
        const field = property.read(attributes);
        if (field !== undefined && field !== property.fallback) fields[name] = field;
        else if (!property.isOptional) return undefined;
      }
      // All properties that the node requires are there, each read by its own codec.
      const complete: unknown = fields;
      return complete as ExprOf<K>;
    },
  };
}

/** The kernel reports an upper end equal to the lower one when none was given. */
function upperEnd(type: number, lowerType: number): p.Property<number> {
  const { write, read } = p.register(type);
  return {
    isOptional: true,
    write,
    read: (a) => (a.u32Be(type) === a.u32Be(lowerType) ? undefined : read(a)),
  };
}

function optionalOffset(type: number): p.Property<number> {
  return { ...p.u32(type), isOptional: true, fallback: 0 };
}

/** Units of 0 bytes are not a conversion. */
const unitSize: p.Property<number> = { ...p.u32(5), read: (a) => a.u32Be(5) || undefined };

const bitwiseMask: p.Property<Uint8Array> = {
  write(writer, mask) {
    writer.u32Be(BITWISE.OP, BITWISE_BOOL);
    writer.u32Be(BITWISE.LEN, mask.length);
    p.value(BITWISE.MASK).write(writer, mask);
  },
  read: (a) =>
    (a.u32Be(BITWISE.OP) ?? BITWISE_BOOL) === BITWISE_BOOL ? p.value(BITWISE.MASK).read(a) : undefined,
};

const lookupTarget: p.Property<NonNullable<LookupExpr['dreg']>> = {
  isOptional: true,
  write(writer, dreg) {
    if (dreg === 'verdict') writer.u32Be(LOOKUP.DREG, verdictRegister);
    else writeRegister(writer, LOOKUP.DREG, dreg);
  },
  read(a) {
    const target = a.u32Be(LOOKUP.DREG);
    return target === verdictRegister ? 'verdict' : registerWord(target);
  },
};

const lookupInverse: p.Property<boolean> = {
  isOptional: true,
  write(writer, inverse) {
    if (inverse) writer.u32Be(LOOKUP.FLAGS, LOOKUP_INVERSE);
  },
  read: (a) => ((a.u32Be(LOOKUP.FLAGS) ?? 0) & LOOKUP_INVERSE ? true : undefined),
};

/** A verdict is an immediate value for register 0. */
const immediateVerdict: p.Property<Verdict> = {
  write(writer, verdict) {
    writer.u32Be(IMMEDIATE.DREG, verdictRegister);
    writeVerdict(writer, IMMEDIATE.DATA, verdict);
  },
  read: (a) =>
    a.u32Be(IMMEDIATE.DREG) === verdictRegister ? readVerdict(a.nested(IMMEDIATE.DATA)) : undefined,
};

const headerChecksum: p.Property<number> = {
  isOptional: true,
  write(writer, offset) {
    writer.u32Be(CHECKSUM.TYPE, CHECKSUM_INET);
    writer.u32Be(CHECKSUM.OFFSET, offset);
  },
  read: (a) => (a.u32Be(CHECKSUM.TYPE) === CHECKSUM_INET ? a.u32Be(CHECKSUM.OFFSET) : undefined),
};

const updatesTransport: p.Property<true> = {
  isOptional: true,
  write: (writer) => writer.u32Be(CHECKSUM.FLAGS, CHECKSUM_OF_TRANSPORT),
  read: (a) => (a.u32Be(CHECKSUM.FLAGS) === CHECKSUM_OF_TRANSPORT ? true : undefined),
};

/** A key of the original direction. */
function original<K extends string>(keys: Readonly<Record<K, number>>): p.Property<K> {
  const key = p.named(CT.KEY, keys);
  return {
    write(writer, value) {
      key.write(writer, value);
      writer.u8(CT.DIRECTION, ORIGINAL);
    },
    read: (a) => (a.u8(CT.DIRECTION) === ORIGINAL ? key.read(a) : undefined),
  };
}

/** The kernel reports no code for a TCP reset. */
const rejectCode: p.Property<number> = {
  write: (writer, code) => writer.u8(2, code),
  read: (a) => a.u8(2) ?? 0,
};

/** Without a terminating NUL, as nft sends it. */
const counterName: p.Property<string> = {
  write: (writer, name) => writer.data(2, encoder.encode(name)),
  read: (a) => a.string(2),
};

const dynsetTimeout: p.Property<number> = {
  isOptional: true,
  write: (writer, timeoutMs) => writer.u64Be(DYNSET_TIMEOUT, BigInt(timeoutMs)),
  read: (a) => Number(a.u64Be(DYNSET_TIMEOUT) ?? 0n) || undefined,
};

const bitwise = codec('bitwise', {
  sreg: p.register(1),
  dreg: p.register(2),
  mask: bitwiseMask,
  xor: p.value(5),
});

/** Codecs by kind. Where two kinds have one name in the kernel, the one that reads first comes first. */
export const codecs: { readonly [K in KnownKind]: ExprCodec<ExprOf<K>> } = {
  payload: codec('payload', {
    dreg: p.register(1),
    base: p.named(2, payloadBases),
    offset: p.u32(3),
    length: p.u32(4),
  }),
  'payload-set': codec('payload-set', {
    sreg: p.register(5),
    base: p.named(2, payloadBases),
    offset: p.u32(3),
    length: p.u32(4),
    headerChecksum,
    updatesTransport,
  }),
  meta: codec('meta', { key: p.named(2, metaKeys), dreg: p.register(1) }),
  'meta-set': codec('meta-set', { key: p.named(2, settableMetaKeys), sreg: p.register(3) }),
  ct: codec('ct', { key: p.named(2, ctKeys), dreg: p.register(1) }, [CT.DIRECTION]),
  'ct-original': codec('ct-original', { key: original(ctOriginalKeys), dreg: p.register(1) }),
  'ct-set': codec('ct-set', { key: original({ zone: ctOriginalKeys.zone }), sreg: p.register(4) }),
  cmp: codec('cmp', { sreg: p.register(1), op: p.named(2, cmpOps), value: p.value(3) }),
  range: codec('range', {
    sreg: p.register(1),
    op: p.named(2, rangeOps),
    from: p.value(3),
    to: p.value(4),
  }),
  bitwise: {
    ...bitwise,
    write(writer, expr: BitwiseExpr) {
      const { mask, xor } = expr;
      if (mask.length !== xor.length) {
        throw new RangeError(`bitwise mask has ${mask.length} bytes and xor ${xor.length}`);
      }
      bitwise.write(writer, expr);
    },
  },
  byteorder: codec('byteorder', {
    sreg: p.register(1),
    dreg: p.register(2),
    op: p.named(3, byteorderOps),
    length: p.u32(4),
    size: unitSize,
  }),
  lookup: codec('lookup', {
    sreg: p.register(2),
    dreg: lookupTarget,
    set: p.text(1),
    setId: p.optional(p.u32(4)),
    inverse: lookupInverse,
  }),
  fib: codec('fib', { flags: p.flags(3, fibFlags), result: p.named(2, fibResults), dreg: p.register(1) }),
  numgen: codec('numgen', {
    dreg: p.register(1),
    modulus: p.u32(2),
    type: p.named(3, numgenTypes),
    offset: optionalOffset(4),
  }),
  hash: codec('hash', {
    sreg: p.register(1),
    dreg: p.register(2),
    length: p.u32(3),
    modulus: p.u32(4),
    seed: p.u32(5),
    offset: optionalOffset(6),
    type: p.named(7, { jenkins: 0 }),
  }),
  immediate: codec('immediate', { dreg: p.register(1), value: p.value(2) }),
  verdict: codec('verdict', { verdict: immediateVerdict }),
  nat: codec('nat', {
    type: p.named(1, natTypes),
    family: p.named(2, natFamilies),
    addr: p.optional(p.register(3)),
    addrMax: upperEnd(4, 3),
    port: p.optional(p.register(5)),
    portMax: upperEnd(6, 5),
    flags: p.optionalFlags(7, natFlags),
  }),
  masq: codec('masq', { flags: p.optionalFlags(1, natFlags) }, MASQ_PORTS),
  reject: codec('reject', { type: p.named(1, rejectTypes), code: rejectCode }),
  counter: codec('counter', {
    bytes: p.optional(p.u64(NFTA_COUNTER.BYTES)),
    packets: p.optional(p.u64(NFTA_COUNTER.PACKETS)),
  }),
  limit: codec('limit', {
    rate: p.u64(1),
    unitSeconds: p.u64(2),
    burst: p.u32(3),
    counts: p.named(4, { packets: 0 }),
    flags: p.optionalFlags(5, { over: 1 }),
  }),
  objref: codec('objref', { type: p.named(1, { counter: NFT_OBJECT_COUNTER }), name: counterName }),
  dynset: codec(
    'dynset',
    {
      key: p.register(4),
      data: p.optional(p.register(5)),
      op: p.named(3, dynsetOps),
      timeoutMs: dynsetTimeout,
      set: p.text(1),
      setId: p.optional(p.u32(2)),
    },
    DYNSET_EXPRS,
  ),
  flow_offload: codec('flow_offload', { flowtable: p.text(1) }),
};
