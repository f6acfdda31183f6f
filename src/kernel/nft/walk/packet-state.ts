import { hostLittleEndian } from '../../../native/byte-order.ts';
import type { Element } from '../objects.ts';

/** The first packet of a connection. Addresses are in network order and of one family. */
export interface FirstPacket {
  /** L4 protocol number. */
  readonly protocol: number;
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly port: number;
  /** Name of the input interface: empty when not known, undefined for packets of this node. */
  readonly input: string | undefined;
}

/** An element or statement that influenced the fate of a packet. */
export type Step =
  | { readonly kind: 'element'; readonly set: string; readonly element: Element }
  /** An element that does not exist: a random number has none, or the rule matches its absence. */
  | { readonly kind: 'missing'; readonly set: string; readonly key: Uint8Array }
  /** A statement of a rule, in the syntax of nft. */
  | { readonly kind: 'statement'; readonly chain: string; readonly text: string };

/** Known bytes of a header and their offset in it. */
export interface HeaderPart {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

const registerBytes = 64;

interface Trail {
  readonly step: Step;
  readonly before: Trail | undefined;
}

/** A packet on its path through chains. A random number forks it into one state per number. */
export class PacketState {
  readonly registers = new Uint8Array(registerBytes);
  readonly packet: FirstPacket;
  /** The probability of all random numbers that led to this state. */
  probability = 1;
  destination: Uint8Array;
  port: number;
  /** The input interface. It becomes `lo` for a packet from the node to itself. */
  input: string | undefined;
  mark = 0;
  priority = 0;
  isRewritten = false;
  isMasqueraded = false;
  /** For how long the rules remember the client; 0 when they do not. */
  rememberedMs = 0;
  /** Time left of the element with a timeout that decided; undefined when a random number decided after it. */
  recalledMs: number | undefined;
  #trail: Trail | undefined;

  constructor(packet: FirstPacket) {
    this.packet = packet;
    this.destination = packet.destination;
    this.port = packet.port;
    this.input = packet.input;
  }

  fork(probability: number): PacketState {
    const copy = new PacketState(this.packet);
    copy.registers.set(this.registers);
    copy.probability = this.probability * probability;
    copy.destination = this.destination;
    copy.port = this.port;
    copy.input = this.input;
    copy.mark = this.mark;
    copy.priority = this.priority;
    copy.isRewritten = this.isRewritten;
    copy.isMasqueraded = this.isMasqueraded;
    copy.rememberedMs = this.rememberedMs;
    copy.recalledMs = this.recalledMs;
    copy.#trail = this.#trail;
    return copy;
  }

  note(step: Step): void {
    this.#trail = { step, before: this.#trail };
  }

  steps(): Step[] {
    const steps: Step[] = [];
    for (let at = this.#trail; at; at = at.before) steps.push(at.step);
    return steps.reverse();
  }

  /** Bytes beginning at a register. */
  read(register: number, length: number): Uint8Array {
    return this.registers.slice(register * 4, register * 4 + length);
  }

  readWord(register: number): number {
    return new DataView(this.registers.buffer).getUint32(register * 4, hostLittleEndian);
  }

  /** Fills whole registers; pads the last one with zeros. */
  write(register: number, bytes: Uint8Array): void {
    const start = register * 4;
    this.registers.fill(0, start, start + Math.ceil(bytes.length / 4) * 4);
    this.registers.set(bytes.subarray(0, registerBytes - start), start);
  }

  writeWord(register: number, value: number): void {
    new DataView(this.registers.buffer).setUint32(register * 4, value >>> 0, hostLittleEndian);
  }

  /** The known part of the network header: both addresses. */
  get addresses(): HeaderPart {
    const { source } = this.packet;
    return {
      offset: source.length === 4 ? 12 : 8,
      bytes: Uint8Array.of(...source, ...this.destination),
    };
  }

  /** The known part of the transport header: the destination port. */
  get destinationPort(): HeaderPart {
    return { offset: 2, bytes: Uint8Array.of(this.port >> 8, this.port & 0xff) };
  }
}
