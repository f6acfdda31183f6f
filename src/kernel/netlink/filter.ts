import { hostLittleEndian } from '../../native/byte-order.ts';
import { attributeHeaderLength } from './constants.ts';

/** Instructions of classic BPF. */
const LOAD_WORD = 0x20;
const LOAD_HALF = 0x28;
const LOAD_BYTE_AT_X = 0x50;
const SET_A = 0x00;
const SET_X = 0x01;
const COPY_A_TO_X = 0x07;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;
const everything = 0xffffffff;
/** Loads from here on are functions of the kernel: the offset of attribute X, searched from A on, or inside of A. */
const FIND_ATTRIBUTE = 0xfffff000 + 12;
const FIND_NESTED = 0xfffff000 + 16;
/** Offsets in the header of a message: its type, its flags, and the port of the socket whose request caused it. */
const typeOffset = 4;
const flagsOffset = 6;
const portOffset = 12;

type Instruction = readonly [code: number, operand: number, jump?: 'accept' | 'drop'];

/**
 * A socket filter (classic BPF) that drops notifications of requests from these ports, 200 at most. With our own ports
 * it keeps a large transaction from coming back as hundreds of thousands of messages that overrun the socket. It checks
 * the first message only: the kernel does not mix messages of several senders in a datagram.
 */
export function ignorePorts(ports: readonly number[]): Uint8Array {
  if (ports.length > 200) throw new RangeError(`a filter of ${ports.length} ports is too long`);
  return encode(
    [[LOAD_WORD, portOffset], ...ports.map((port): Instruction => [JUMP_IF_EQUAL, loadedWord(port), 'drop'])],
    'accept',
  );
}

export interface AttributeCondition {
  /** Types of messages that pass in any case. */
  readonly types: readonly number[];
  /** Flags of which one lets a message pass in any case. */
  readonly flags: number;
  /** Length of the headers before the attributes. */
  readonly headers: number;
  /** The way to a nested attribute of one byte. */
  readonly path: readonly [number, ...number[]];
  /** Values of that byte that let a message pass. */
  readonly values: readonly number[];
}

/** A socket filter that drops messages, unless a nested attribute has one of some values. */
export function requireAttribute({ types, flags, headers, path, values }: AttributeCondition): Uint8Array {
  const [first, ...nested] = path;
  return encode(
    [
      [LOAD_HALF, typeOffset],
      ...types.map((type): Instruction => [JUMP_IF_EQUAL, loadedHalf(type), 'accept']),
      [LOAD_HALF, flagsOffset],
      [JUMP_IF_ANY_BIT, loadedHalf(flags), 'accept'],
      [SET_A, headers],
      ...find(FIND_ATTRIBUTE, first),
      ...nested.flatMap((type) => find(FIND_NESTED, type)),
      [COPY_A_TO_X, 0],
      [LOAD_BYTE_AT_X, attributeHeaderLength],
      ...values.map((value): Instruction => [JUMP_IF_EQUAL, value, 'accept']),
    ],
    'drop',
  );
}

/** Sets A to the offset of an attribute. */
function find(how: number, type: number): Instruction[] {
  return [
    [SET_X, type],
    [LOAD_WORD, how],
    [JUMP_IF_EQUAL, 0, 'drop'],
  ];
}

/** Each instruction may jump to an end; `otherwise` is the end after the last one. */
function encode(instructions: readonly Instruction[], otherwise: 'accept' | 'drop'): Uint8Array {
  const ends = otherwise === 'accept' ? (['accept', 'drop'] as const) : (['drop', 'accept'] as const);
  const program = new Uint8Array((instructions.length + ends.length) * 8);
  const view = new DataView(program.buffer);
  const put = (i: number, code: number, ifTrue: number, operand: number) => {
    view.setUint16(i * 8, code, hostLittleEndian);
    view.setUint8(i * 8 + 2, ifTrue);
    view.setUint32(i * 8 + 4, operand, hostLittleEndian);
  };
  for (const [i, [code, operand, jump]] of instructions.entries()) {
    const target = jump ? instructions.length + ends.indexOf(jump) : i + 1;
    put(i, code, target - i - 1, operand);
  }
  for (const [i, end] of ends.entries()) {
    put(instructions.length + i, RETURN, 0, end === 'accept' ? everything : 0);
  }
  return program;
}

/** Filters load numbers in network byte order, while messages have them in host byte order. */
function loadedWord(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, value, hostLittleEndian);
  return view.getUint32(0);
}

function loadedHalf(value: number): number {
  const view = new DataView(new ArrayBuffer(2));
  view.setUint16(0, value, hostLittleEndian);
  return view.getUint16(0);
}
