import type { BitwiseExpr, CmpExpr, CtExpr, Expr, FibExpr, MetaExpr, RangeExpr } from '../expr.ts';
import type { PacketState } from './packet-state.ts';

const stateNew = 8;
const statusRewritten = 32;
const routeTypeUnicast = 1;
const routeTypeLocal = 2;
const interfaceNameBytes = 16;

/** Whether an address is one of the node's. */
export type IsLocal = (address: Uint8Array) => boolean;

/** Expressions that neither look anything up nor decide anything, beyond whether their rule goes on. */
export type PlainExpr = Exclude<
  Expr,
  { kind: 'lookup' | 'verdict' | 'numgen' | 'nat' | 'masq' | 'reject' | 'dynset' | 'unknown' }
>;

/** A rule that a packet comes to does something that is not known here: where it leads cannot be told. */
export class NotUnderstoodError extends Error {
  constructor(what: string) {
    super(`a rule on the way of the packet is not understood: ${what}`);
  }
}

/** Runs one; false when its rule ends here. */
export function evaluate(expr: PlainExpr, state: PacketState, isLocal: IsLocal): boolean {
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
      return true;
  }
}

function loadPayload(expr: Extract<Expr, { kind: 'payload' }>, state: PacketState): boolean {
  if (expr.base === 'link') throw new NotUnderstoodError('it asks for the link layer');
  const header = expr.base === 'network' ? state.networkHeader : state.transportHeader;
  const bytes = header.slice(expr.offset, expr.offset + expr.length);
  if (bytes.length < expr.length) return false;
  state.write(expr.dreg, bytes);
  return true;
}

function loadMeta({ key, dreg }: MetaExpr, state: PacketState): boolean {
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
      throw new NotUnderstoodError(`it asks for meta ${key}`);
  }
}

function loadConntrack({ key, dreg }: CtExpr, state: PacketState): boolean {
  if (key !== 'state' && key !== 'status') throw new NotUnderstoodError(`it asks for ct ${key}`);
  const status = state.isRewritten ? statusRewritten : 0;
  state.writeWord(dreg, key === 'state' ? stateNew : status);
  return true;
}

function loadRoute({ flags, result, dreg }: FibExpr, state: PacketState, isLocal: IsLocal): boolean {
  if (result !== 'type') throw new NotUnderstoodError(`it asks for fib ${result}`);
  const address = flags.includes('saddr') ? state.packet.source : state.destination;
  state.writeWord(dreg, isLocal(address) ? routeTypeLocal : routeTypeUnicast);
  return true;
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
