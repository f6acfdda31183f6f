import type { CmpExpr, CtExpr, Expr, FibExpr, MetaExpr, PayloadExpr, RangeExpr } from '../expr.ts';
import {
  type Answer,
  answerOf,
  type Bits,
  equals,
  isKnown,
  knownBytes,
  knownWord,
  masked,
  opposite,
  type PartialRegisters,
  swapped,
  unknownBytes,
} from './known-bits.ts';
import {
  ethertype,
  familyNumber,
  networkHeader,
  type PacketView,
  transportHeader,
} from './partial-packet.ts';

const interfaceNameBytes = 16;
/** Bits of conntrack's state. */
const stateInvalid = 1;
const stateNew = 8;
/** Bits of conntrack's status: of a connection whose first packet is on its way, these are known. */
const statusRewritten = 1 << 5;
const knownStatus = 0x2f;
const routeTypeUnicast = 1;
const routeTypeLocal = 2;

/** Facts about the node and about conntrack that rules may test. */
export interface PartialFacts {
  isLocal(address: Uint8Array): boolean;
  /** Index of an interface; undefined when there is none of this name. */
  indexOf(interfaceName: string): number | undefined;
  /** Whether the route to an address leads to this interface. */
  leadsTo(address: Uint8Array, interfaceName: string): Promise<boolean>;
}

/** A packet while it runs through rules. Chains of a hook that come later see the mark that earlier ones set. */
export interface PartialState {
  readonly view: PacketView;
  /** False in chains that come before conntrack. */
  readonly isTracked: boolean;
  mark: Bits;
}

/** Expressions that load values into registers, convert or compare them. */
export type LoadExpr = Extract<
  Expr,
  {
    kind:
      | 'payload'
      | 'meta'
      | 'ct'
      | 'fib'
      | 'immediate'
      | 'bitwise'
      | 'byteorder'
      | 'cmp'
      | 'range'
      | 'numgen'
      | 'hash';
  }
>;

/** Runs an expression. `no`: its rule ends here. */
export async function evaluatePartly(
  expr: LoadExpr,
  registers: PartialRegisters,
  state: PartialState,
  facts: PartialFacts,
): Promise<Answer> {
  switch (expr.kind) {
    case 'cmp':
      return compares(expr, registers.read(expr.sreg, expr.value.length));
    case 'range':
      return isInRange(expr, registers.read(expr.sreg, expr.from.length));
    default: {
      const bits = await loaded(expr, registers, state, facts);
      if (bits === 'none') return 'no';
      registers.write(expr.dreg, bits);
      return 'yes';
    }
  }
}

/** The value that an expression loads; `none` when the kernel has none and ends the rule. */
async function loaded(
  expr: Exclude<LoadExpr, CmpExpr | RangeExpr>,
  registers: PartialRegisters,
  state: PartialState,
  facts: PartialFacts,
): Promise<Bits | 'none'> {
  switch (expr.kind) {
    case 'payload':
      return payload(expr, state.view);
    case 'meta':
      return meta(expr, state, facts);
    case 'ct':
      return conntrack(expr, state);
    case 'fib':
      return route(expr, state.view, facts);
    case 'immediate':
      return knownBytes(expr.value);
    case 'bitwise':
      return masked(registers.read(expr.sreg, expr.mask.length), expr.mask, expr.xor);
    case 'byteorder':
      return swapped(registers.read(expr.sreg, expr.length), expr.size);
    case 'numgen':
    case 'hash':
      return unknownBytes(4);
  }
}

function payload({ base, offset, length }: PayloadExpr, view: PacketView): Bits {
  switch (base) {
    case 'link':
      return unknownBytes(length);
    case 'network':
      return networkHeader(view, offset, length);
    case 'transport':
      return transportHeader(view, offset, length);
  }
}

function meta({ key }: MetaExpr, { view, mark }: PartialState, facts: PartialFacts): Bits {
  switch (key) {
    case 'protocol':
      return ethertype(view);
    case 'nfproto':
      return knownBytes(Uint8Array.of(familyNumber(view)));
    case 'l4proto':
      return knownBytes(Uint8Array.of(view.protocol));
    case 'mark':
      return mark;
    case 'priority':
      return unknownBytes(4);
    case 'iif':
      return interfaceIndex(view.input, facts);
    case 'oif':
      return interfaceIndex(view.output, facts);
    case 'iifname':
      return interfaceName(view.input);
    case 'oifname':
      return interfaceName(view.output);
  }
}

/** Of a packet without an interface the name is empty and the index 0. */
function interfaceName(name: string | undefined): Bits {
  if (name === '') return unknownBytes(interfaceNameBytes);
  const bytes = new Uint8Array(interfaceNameBytes);
  new TextEncoder().encodeInto(name ?? '', bytes.subarray(0, interfaceNameBytes - 1));
  return knownBytes(bytes);
}

function interfaceIndex(name: string | undefined, facts: PartialFacts): Bits {
  const index = name === undefined ? 0 : facts.indexOf(name);
  return index === undefined ? unknownBytes(4) : knownWord(index);
}

function conntrack({ key }: CtExpr, { view, isTracked }: PartialState): Bits | 'none' {
  if (key === 'state') return knownWord(isTracked ? stateNew : stateInvalid);
  if (!isTracked) return 'none';
  switch (key) {
    case 'status':
      return knownWord(view.isRewritten ? statusRewritten : 0, knownStatus);
    case 'direction':
      return knownBytes(Uint8Array.of(0));
    case 'l3protocol':
      return knownBytes(Uint8Array.of(familyNumber(view)));
    case 'protocol':
      return knownBytes(Uint8Array.of(view.protocol));
    case 'mark':
      return unknownBytes(4);
    case 'packets':
      return unknownBytes(8);
  }
}

/** The type of an address, or, as `fib saddr . iif oif` asks, whether replies leave by the interface of arrival. */
async function route({ flags, result }: FibExpr, view: PacketView, facts: PartialFacts): Promise<Bits> {
  const address = flags.includes('saddr') ? view.source : view.destination;
  if (!address) return unknownBytes(4);
  if (result === 'type' && !flags.includes('iif') && !flags.includes('oif')) {
    return knownWord(facts.isLocal(address) ? routeTypeLocal : routeTypeUnicast);
  }
  const { input } = view;
  const isReversePath = result === 'oif' && flags.includes('iif') && flags.includes('present');
  if (!isReversePath || !input) return unknownBytes(4);
  return (await facts.leadsTo(address, input)) ? knownBytes(Uint8Array.of(1)) : unknownBytes(4);
}

function compares({ op, value }: CmpExpr, bits: Bits): Answer {
  if (op === 'eq') return equals(bits, value);
  if (op === 'neq') return opposite(equals(bits, value));
  if (!isKnown(bits)) return 'maybe';
  const order = Buffer.compare(bits.value, value);
  switch (op) {
    case 'lt':
      return answerOf(order < 0);
    case 'lte':
      return answerOf(order <= 0);
    case 'gt':
      return answerOf(order > 0);
    case 'gte':
      return answerOf(order >= 0);
  }
}

function isInRange({ op, from, to }: RangeExpr, bits: Bits): Answer {
  if (!isKnown(bits)) return 'maybe';
  const isInside = Buffer.compare(bits.value, from) >= 0 && Buffer.compare(bits.value, to) <= 0;
  return answerOf(isInside === (op === 'eq'));
}
