import { hostLittleEndian } from '../../native/byte-order.ts';

const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
const everything = 0xffffffff;
/** Where a message has the port of the socket whose request it tells of. */
const portOffset = 12;

/**
 * A socket filter (classic BPF) that keeps out the notifications of our own requests: a large transaction would
 * otherwise come back as hundreds of thousands of messages and overrun the socket. The kernel puts messages of one
 * sender only into a datagram, so looking at the first is enough.
 */
export function ignorePort(port: number): Uint8Array {
  return ignorePorts([port]);
}

/** The same for several senders, 200 at most. */
export function ignorePorts(ports: readonly number[]): Uint8Array {
  if (ports.length > 200) throw new RangeError(`a filter of ${ports.length} ports is too long`);
  const instructions: [code: number, ifTrue: number, ifFalse: number, operand: number][] = [
    [LOAD_WORD, 0, 0, portOffset],
    // Each jumps over those after it and over the instruction that accepts.
    ...ports.map((port, i): [number, number, number, number] => {
      return [JUMP_IF_EQUAL, ports.length - i, 0, loadedValue(port)];
    }),
    [RETURN, 0, 0, everything],
    [RETURN, 0, 0, 0],
  ];
  const program = new Uint8Array(instructions.length * 8);
  const view = new DataView(program.buffer);
  for (const [i, [code, ifTrue, ifFalse, operand]] of instructions.entries()) {
    view.setUint16(i * 8, code, hostLittleEndian);
    view.setUint8(i * 8 + 2, ifTrue);
    view.setUint8(i * 8 + 3, ifFalse);
    view.setUint32(i * 8 + 4, operand, hostLittleEndian);
  }
  return program;
}

/** Filters load words in network order, while the port is stored in the host's. */
function loadedValue(port: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, port, hostLittleEndian);
  return view.getUint32(0);
}
