import { jhash, scaled } from '../../../lib/jhash.ts';
import type {
  BitwiseExpr,
  CmpExpr,
  CtExpr,
  Expr,
  FibExpr,
  HashExpr,
  MetaExpr,
  PayloadExpr,
  RangeExpr,
} from '../expr.ts';
import type { PacketState } from './packet-state.ts';

const stateNew = 8;
const statusRewritten = 32;
const originalDirection = 0;
const tcp = 6;
/** A first packet has the flag SYN. */
const tcpFlags = { offset: 13, first: 0x02 } as const;
const routeTypeUnicast = 1;
const routeTypeLocal = 2;
const interfaceNameBytes = 16;

/** Whether an address is this node's. */
export type IsLocal = (address: Uint8Array) => boolean;

/** Expressions that only read and write registers or metadata, or end their rule. */
export type PlainExpr = Exclude<
  Expr,
  {
    kind:
      | 'lookup'
      | 'verdict'
      | 'numgen'
      | 'nat'
      | 'masq'
      | 'reject'
      | 'dynset'
      | 'limit'
      | 'payload-set'
      | 'ct-original'
      | 'ct-set'
      | 'unknown';
  }
>;

/** Runs an expression. Returns false when its rule ends here, undefined when it needs an unknown fact. */
export function evaluate(expr: PlainExpr, state: PacketState, isLocal: IsLocal): boolean | undefined {
  switch (expr.kind) {
    case 'payload':
      return loadPayload(expr, state);
    case 'meta':
      return loadMeta(expr, state);
    case 'meta-set':
      if (expr.key !== 'nftrace') state[expr.key] = state.readWord(expr.sreg);
      return true;
    case 'ct':
      return loadConntrack(expr, state);
    case 'fib':
      return loadRoute(expr, state, isLocal);
    case 'hash':
      state.writeWord(expr.dreg, hashed(expr, state));
      return true;
    case 'immediate':
      state.write(expr.dreg, expr.value);
      return true;
    case 'bitwise':
      state.write(expr.dreg, masked(expr, state));
      return true;
    case 'byteorder':
      state.write(expr.dreg, swapped(state.read(expr.sreg, expr.length), expr.size));
      return true;
    case 'cmp':
      return compares(expr, state);
    case 'range':
      return isInRange(expr, state) === (expr.op === 'eq');
    case 'counter':
    case 'objref':
    case 'flow_offload':
      return true;
  }
}

function loadPayload({ base, offset, length, dreg }: PayloadExpr, state: PacketState): true | undefined {
  if (base === 'link') return undefined;
  if (base === 'transport' && offset === tcpFlags.offset && length === 1 && state.packet.protocol === tcp) {
    state.write(dreg, Uint8Array.of(tcpFlags.first));
    return true;
  }
  const known = base === 'network' ? state.addresses : state.destinationPort;
  const from = offset - known.offset;
  if (from < 0 || from + length > known.bytes.length) return undefined;
  state.write(dreg, known.bytes.slice(from, from + length));
  return true;
}

function loadMeta({ key, dreg }: MetaExpr, state: PacketState): true | undefined {
  switch (key) {
    case 'l4proto':
      state.write(dreg, Uint8Array.of(state.packet.protocol));
      return true;
    case 'nfproto':
      state.write(dreg, Uint8Array.of(state.packet.source.length === 4 ? 2 : 10));
      return true;
    case 'mark':
    case 'priority':
      state.writeWord(dreg, state[key]);
      return true;
    case 'iifname':
      state.write(dreg, interfaceName(state.input ?? ''));
      return true;
    case 'protocol':
    case 'iif':
    case 'oif':
    case 'oifname':
      return undefined;
  }
}

function loadConntrack({ key, dreg }: CtExpr, state: PacketState): true | undefined {
  if (key === 'direction') {
    state.write(dreg, Uint8Array.of(originalDirection));
    return true;
  }
  if (key !== 'state' && key !== 'status') return undefined;
  const status = state.isRewritten ? statusRewritten : 0;
  state.writeWord(dreg, key === 'state' ? stateNew : status);
  return true;
}

function loadRoute({ flags, result, dreg }: FibExpr, state: PacketState, isLocal: IsLocal): true | undefined {
  const [which, ...others] = flags;
  if (result !== 'type' || others.length > 0) return undefined;
  if (which !== 'saddr' && which !== 'daddr') return undefined;
  const address = which === 'saddr' ? state.packet.source : state.destination;
  state.writeWord(dreg, isLocal(address) ? routeTypeLocal : routeTypeUnicast);
  return true;
}

function hashed({ sreg, length, seed, modulus, offset = 0 }: HashExpr, state: PacketState): number {
  return offset + scaled(jhash(state.read(sreg, length), seed), modulus);
}

function masked({ sreg, mask, xor }: BitwiseExpr, state: PacketState): Uint8Array {
  return state.read(sreg, mask.length).map((byte, i) => (byte & (mask[i] ?? 0)) ^ (xor[i] ?? 0));
}

function swapped(bytes: Uint8Array, size: number): Uint8Array {
  const units = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.slice(i * size, (i + 1) * size).reverse(),
  );
  return Uint8Array.from(units.flatMap((unit) => [...unit]));
}

function compares({ op, sreg, value }: CmpExpr, state: PacketState): boolean {
  const order = Buffer.compare(state.read(sreg, value.length), value);
  switch (op) {
    case 'eq':
      return order === 0;
    case 'neq':
      return order !== 0;
    case 'lt':
      return order < 0;
    case 'lte':
      return order <= 0;
    case 'gt':
      return order > 0;
    case 'gte':
      return order >= 0;
  }
}

function isInRange({ sreg, from, to }: RangeExpr, state: PacketState): boolean {
  const value = state.read(sreg, from.length);
  return Buffer.compare(value, from) >= 0 && Buffer.compare(value, to) <= 0;
}

function interfaceName(text: string): Uint8Array {
  const bytes = new Uint8Array(interfaceNameBytes);
  new TextEncoder().encodeInto(text, bytes.subarray(0, interfaceNameBytes - 1));
  return bytes;
}
