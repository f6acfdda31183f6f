import { hostLittleEndian } from '../../native/byte-order.ts';

const LOAD_WORD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
const everything = 0xffffffff;
/** Offset of the port of the socket whose request caused a notification. */
const portOffset = 12;

/**
 * A socket filter (classic BPF) that drops notifications of requests from these ports, 200 at most. With our own ports
 * it keeps a large transaction from coming back as hundreds of thousands of messages that overrun the socket. It checks
 * the first message only: the kernel does not mix messages of several senders in a datagram.
 */
export function ignorePorts(ports: readonly number[]): Uint8Array {
  if (ports.length > 200) throw new RangeError(`a filter of ${ports.length} ports is too long`);
  const instructions: [code: number, ifTrue: number, ifFalse: number, operand: number][] = [
    [LOAD_WORD, 0, 0, portOffset],
    // Each jumps over the comparisons after it and over the instruction that accepts.
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

/** Filters load words in network byte order, while the port is stored in host byte order. */
function loadedValue(port: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, port, hostLittleEndian);
  return view.getUint32(0);
}
