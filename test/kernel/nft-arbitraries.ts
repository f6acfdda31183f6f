import fc from 'fast-check';
import type { Expr, Register } from '../../src/kernel/nft/expr.ts';

/** A record with an ordinary prototype; all keys are required unless `required` names some. */
export function record<T, K extends keyof T = keyof T>(
  model: { [P in keyof T]: fc.Arbitrary<T[P]> },
  required?: K[],
): fc.Arbitrary<fc.RecordValue<T, K>> {
  return fc.record<T, K>(model, { noNullPrototype: true, ...(required && { requiredKeys: required }) });
}

const register: fc.Arbitrary<Register> = fc.nat(15);
const value = fc.uint8Array({ minLength: 1, maxLength: 16 });
const masked = fc.uint8Array({ minLength: 4, maxLength: 4 });
const u32 = fc.nat(0xffffffff);
const name = fc.stringMatching(/^[a-z-]{1,20}$/);
const natFlags = fc.subarray(['random', 'persistent', 'fully-random'] as const, { minLength: 1 });

/** Expressions that load registers. */
const loads: fc.Arbitrary<Expr>[] = [
  record({
    kind: fc.constant('payload'),
    base: fc.constantFrom('link', 'network', 'transport'),
    offset: u32,
    length: u32,
    dreg: register,
  }),
  record({
    kind: fc.constant('meta'),
    key: fc.constantFrom('mark', 'l4proto', 'iifname', 'priority'),
    dreg: register,
  }),
  record({
    kind: fc.constant('ct'),
    key: fc.constantFrom('state', 'status', 'direction', 'packets'),
    dreg: register,
  }),
  record({
    kind: fc.constant('ct-original'),
    key: fc.constantFrom('saddr', 'saddr6', 'sport', 'zone'),
    dreg: register,
  }),
  record({
    kind: fc.constant('fib'),
    flags: fc.subarray(['saddr', 'daddr', 'iif', 'present'] as const),
    result: fc.constantFrom('oif', 'oifname', 'type'),
    dreg: register,
  }),
  record(
    {
      kind: fc.constant('numgen'),
      type: fc.constantFrom('random', 'inc'),
      modulus: u32,
      offset: fc.integer({ min: 1, max: 9 }),
      dreg: register,
    },
    ['kind', 'type', 'modulus', 'dreg'],
  ),
  record({ kind: fc.constant('immediate'), dreg: register, value }),
];

/** Expressions that compare, change or look up registers. */
const operations: fc.Arbitrary<Expr>[] = [
  record({
    kind: fc.constant('cmp'),
    op: fc.constantFrom('eq', 'neq', 'lt', 'lte', 'gt', 'gte'),
    sreg: register,
    value,
  }),
  record({
    kind: fc.constant('range'),
    op: fc.constantFrom('eq', 'neq'),
    sreg: register,
    from: value,
    to: value,
  }),
  record({ kind: fc.constant('bitwise'), sreg: register, dreg: register, mask: masked, xor: masked }),
  record({
    kind: fc.constant('byteorder'),
    op: fc.constantFrom('ntoh', 'hton'),
    sreg: register,
    dreg: register,
    length: u32,
    size: fc.constantFrom(2, 4, 8),
  }),
  record(
    {
      kind: fc.constant('lookup'),
      set: name,
      sreg: register,
      dreg: fc.oneof(register, fc.constant('verdict' as const)),
      setId: u32,
      inverse: fc.constant(true),
    },
    ['kind', 'set', 'sreg'],
  ),
];

/** Expressions that change packets, marks, counters and sets, or decide. */
const effects: fc.Arbitrary<Expr>[] = [
  record(
    {
      kind: fc.constant('payload-set'),
      base: fc.constantFrom('link', 'network', 'transport'),
      offset: u32,
      length: u32,
      sreg: register,
      headerChecksum: u32,
      updatesTransport: fc.constant(true as const),
    },
    ['kind', 'base', 'offset', 'length', 'sreg'],
  ),
  record({ kind: fc.constant('ct-set'), key: fc.constant('zone'), sreg: register }),
  record({
    kind: fc.constant('meta-set'),
    key: fc.constantFrom('mark', 'priority', 'nftrace'),
    sreg: register,
  }),
  record({
    kind: fc.constant('verdict'),
    verdict: fc.oneof(
      record({ kind: fc.constantFrom('accept', 'drop', 'continue', 'return') }),
      record({ kind: fc.constantFrom('jump', 'goto'), chain: name }),
    ),
  }),
  record(
    {
      kind: fc.constant('nat'),
      type: fc.constantFrom('dnat', 'snat'),
      family: fc.constantFrom('ip', 'ip6'),
      addr: fc.nat(7),
      addrMax: fc.integer({ min: 8, max: 15 }),
      port: fc.nat(7),
      portMax: fc.integer({ min: 8, max: 15 }),
      flags: natFlags,
    },
    ['kind', 'type', 'family'],
  ),
  record({ kind: fc.constant('masq'), flags: natFlags }, ['kind']),
  record({
    kind: fc.constant('reject'),
    type: fc.constantFrom('icmp-unreach', 'tcp-reset', 'icmpx-unreach'),
    code: fc.nat(255),
  }),
  record({ kind: fc.constant('counter'), packets: fc.bigInt(0n, 9n), bytes: fc.bigInt(0n, 9n) }),
  record(
    {
      kind: fc.constant('limit'),
      rate: fc.bigInt(1n, 9n),
      unitSeconds: fc.constantFrom(1n, 60n, 86_400n),
      burst: u32,
      counts: fc.constant('packets'),
      flags: fc.constant(['over'] as const),
    },
    ['kind', 'rate', 'unitSeconds', 'burst', 'counts'],
  ),
  record({ kind: fc.constant('objref'), type: fc.constant('counter'), name }),
  record(
    {
      kind: fc.constant('dynset'),
      op: fc.constantFrom('add', 'update', 'delete'),
      set: name,
      setId: u32,
      key: register,
      data: register,
      timeoutMs: fc.integer({ min: 1, max: 9999 }),
    },
    ['kind', 'op', 'set', 'key'],
  ),
  record({ kind: fc.constant('flow_offload'), flowtable: name }),
];

/** Any expression that this program writes, in the form in which it is read back. */
export function expression(): fc.Arbitrary<Expr> {
  return fc.oneof(...loads, ...operations, ...effects);
}
