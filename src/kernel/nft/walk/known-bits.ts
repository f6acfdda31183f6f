import { hostLittleEndian } from '../../../native/byte-order.ts';
import type { Register } from '../expr.ts';

/** Bytes of which only some bits are known. `value` is 0 where a bit is unknown. */
export interface Bits {
  readonly value: Uint8Array;
  /** 1 for each known bit. */
  readonly known: Uint8Array;
}

/** Whether something holds; `maybe` when that depends on unknown bits. */
export type Answer = 'yes' | 'no' | 'maybe';

export function knownBytes(value: Uint8Array): Bits {
  return { value, known: new Uint8Array(value.length).fill(0xff) };
}

/** A number in host order, as registers hold it; `mask` has the bits that are known. */
export function knownWord(value: number, mask = 0xffffffff): Bits {
  return { value: wordBytes(value & mask), known: wordBytes(mask) };
}

export function unknownBytes(length: number): Bits {
  return { value: new Uint8Array(length), known: new Uint8Array(length) };
}

/** The number that four bytes in host order hold; undefined unless all bits are known. */
export function wordOf(bits: Bits): number | undefined {
  return isKnown(bits) ? new DataView(bits.value.buffer).getUint32(0, hostLittleEndian) : undefined;
}

function wordBytes(word: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, word >>> 0, hostLittleEndian);
  return bytes;
}

export function isKnown({ known }: Bits): boolean {
  return known.every((byte) => byte === 0xff);
}

/** (bits & mask) ^ xor. A bit that the mask clears is known. */
export function masked({ value, known }: Bits, mask: Uint8Array, xor: Uint8Array): Bits {
  const bits = known.map((byte, i) => byte | (~(mask[i] ?? 0) & 0xff));
  const result = value.map((byte, i) => ((byte & (mask[i] ?? 0)) ^ (xor[i] ?? 0)) & (bits[i] ?? 0));
  return { value: result, known: bits };
}

/** What is known when either of the two holds. */
export function eitherOf(a: Bits, b: Bits): Bits {
  const known = a.known.map((byte, i) => byte & (b.known[i] ?? 0) & ~((a.value[i] ?? 0) ^ (b.value[i] ?? 0)));
  return { value: a.value.map((byte, i) => byte & (known[i] ?? 0)), known };
}

export function slice({ value, known }: Bits, from: number, to: number): Bits {
  return { value: value.slice(from, to), known: known.slice(from, to) };
}

/** Reverses the order of bytes in units of this size. */
export function swapped({ value, known }: Bits, size: number): Bits {
  const swap = (bytes: Uint8Array) =>
    Uint8Array.from(bytes, (_, i) => bytes[i - (i % size) + (size - 1 - (i % size))] ?? 0);
  return { value: swap(value), known: swap(known) };
}

/** Whether the bytes equal the wanted ones. */
export function equals({ value, known }: Bits, wanted: Uint8Array): Answer {
  const differs = wanted.some((byte, i) => ((byte ^ (value[i] ?? 0)) & (known[i] ?? 0)) !== 0);
  if (differs) return 'no';
  return known.every((byte) => byte === 0xff) ? 'yes' : 'maybe';
}

export function opposite(answer: Answer): Answer {
  return answer === 'yes' ? 'no' : answer === 'no' ? 'yes' : 'maybe';
}

export function both(a: Answer, b: Answer): Answer {
  if (a === 'no' || b === 'no') return 'no';
  return a === 'yes' && b === 'yes' ? 'yes' : 'maybe';
}

export function answerOf(isTrue: boolean): Answer {
  return isTrue ? 'yes' : 'no';
}

const registerBytes = 64;

/** The registers of a rule while it runs. Nothing in them is known at first. */
export class PartialRegisters {
  readonly #value = new Uint8Array(registerBytes);
  readonly #known = new Uint8Array(registerBytes);

  read(register: Register, length: number): Bits {
    const from = register * 4;
    return { value: this.#value.slice(from, from + length), known: this.#known.slice(from, from + length) };
  }

  /** Fills whole registers; pads the last one with zeros. */
  write(register: Register, { value, known }: Bits): void {
    const from = register * 4;
    const to = from + Math.ceil(value.length / 4) * 4;
    this.#value.fill(0, from, to);
    this.#known.fill(0xff, from, to);
    this.#value.set(value.subarray(0, registerBytes - from), from);
    this.#known.set(known.subarray(0, registerBytes - from), from);
  }

  /** Nothing is known any more: an expression that is not understood may have written anywhere. */
  forget(): void {
    this.#value.fill(0);
    this.#known.fill(0);
  }
}
