import type { Expr } from '../../../kernel/nft/expr.ts';
import { routeTypeLocal, stateNew, statusDnat, word } from '../portals/rules.ts';
import type { SeenPacket } from './seen-packet.ts';

const wordBytes = 4;
const registerWords = 16;
const nameBytes = 16;
const routeTypeUnicast = 1;

/** Whether an address is one of this node's. */
export type IsOwn = (ip: string) => boolean;

/** The registers that a rule works with. */
export class Registers {
  readonly #bytes = new Uint8Array(registerWords * wordBytes);

  read(register: number, length: number): Uint8Array {
    return this.#bytes.slice(register * wordBytes, register * wordBytes + length);
  }

  /** Fills whole words, the rest with zeros, as the kernel does. */
  write(register: number, value: Uint8Array): void {
    const padded = new Uint8Array(Math.ceil(value.length / wordBytes) * wordBytes);
    padded.set(value);
    this.#bytes.set(padded, register * wordBytes);
  }
}

/** What an expression loads from a packet; undefined when it loads nothing, or something that is not known here. */
export function loaded(expr: Expr, packet: SeenPacket, isOwn: IsOwn): Uint8Array | undefined {
  switch (expr.kind) {
    case 'payload': {
      if (expr.base === 'link') return undefined;
      const end = expr.offset + expr.length;
      return end > packet[expr.base].length ? undefined : packet[expr.base].slice(expr.offset, end);
    }
    case 'meta':
      if (expr.key === 'l4proto') return Uint8Array.of(packet.protocol);
      if (expr.key === 'nfproto') return Uint8Array.of(packet.family);
      return expr.key === 'iifname' ? nameOf(packet.interface ?? '') : undefined;
    case 'ct':
      if (expr.key === 'state') return word(stateNew);
      return expr.key === 'status' ? word(packet.isTranslated ? statusDnat : 0) : undefined;
    case 'fib': {
      const [which, ...others] = expr.flags;
      if (expr.result !== 'type' || others.length > 0) return undefined;
      if (which !== 'saddr' && which !== 'daddr') return undefined;
      const address = which === 'saddr' ? packet.source : packet.destination;
      return word(isOwn(address) ? routeTypeLocal : routeTypeUnicast);
    }
    case 'immediate':
      return expr.value;
    default:
      return undefined;
  }
}

/** Whether a comparison holds; undefined for expressions that compare nothing. */
export function holds(expr: Expr, registers: Registers): boolean | undefined {
  if (expr.kind === 'range') {
    const value = registers.read(expr.sreg, expr.from.length);
    const isInside = Buffer.compare(expr.from, value) <= 0 && Buffer.compare(value, expr.to) <= 0;
    return isInside === (expr.op === 'eq');
  }
  if (expr.kind !== 'cmp') return undefined;
  const order = Buffer.compare(registers.read(expr.sreg, expr.value.length), expr.value);
  switch (expr.op) {
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

function nameOf(text: string): Uint8Array {
  const bytes = new Uint8Array(nameBytes);
  new TextEncoder().encodeInto(text, bytes);
  return bytes;
}
