import { hostLittleEndian } from '../../../native/byte-order.ts';
import type { Element } from '../objects.ts';

/** The first packet of a connection. Addresses are in network order and of one family. */
export interface FirstPacket {
  /** L4 protocol number. */
  readonly protocol: number;
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly port: number;
  /** Name of the interface that it came by, empty when not known; undefined for a packet that this node makes. */
  readonly input: string | undefined;
}

/** Something that has a part in what becomes of a packet. */
export type Step =
  | { readonly kind: 'element'; readonly set: string; readonly element: Element }
  /** Something depends on there being no such element: a number was drawn that has none, or a rule asks for that. */
  | { readonly kind: 'missing'; readonly set: string; readonly key: Uint8Array }
  /** What a rule does, as nft writes it. */
  | { readonly kind: 'statement'; readonly chain: string; readonly text: string };

/** Some bytes of a header, and where they are in it. */
export interface HeaderPart {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

const registerBytes = 64;

interface Trail {
  readonly step: Step;
  readonly before: Trail | undefined;
}

/** A packet on its way through chains. A draw of a random number makes as many of it as there are numbers. */
export class PacketState {
  readonly registers = new Uint8Array(registerBytes);
  readonly packet: FirstPacket;
  /** That it is this one, and not one that another number was drawn for. */
  probability = 1;
  destination: Uint8Array;
  port: number;
  /** The interface that it is seen to come by: that of a packet to the node itself becomes `lo`. */
  input: string | undefined;
  mark = 0;
  priority = 0;
  isRewritten = false;
  isMasqueraded = false;
  /** How long its client is to be remembered; 0 when it is not. */
  rememberedMs = 0;
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

  /** The bytes from a register on. */
  read(register: number, length: number): Uint8Array {
    return this.registers.slice(register * 4, register * 4 + length);
  }

  readWord(register: number): number {
    return new DataView(this.registers.buffer).getUint32(register * 4, hostLittleEndian);
  }

  /** Fills whole registers; what is left of the last one is zero. */
  write(register: number, bytes: Uint8Array): void {
    const start = register * 4;
    this.registers.fill(0, start, start + Math.ceil(bytes.length / 4) * 4);
    this.registers.set(bytes.subarray(0, registerBytes - start), start);
  }

  writeWord(register: number, value: number): void {
    new DataView(this.registers.buffer).setUint32(register * 4, value >>> 0, hostLittleEndian);
  }

  /** What is known of the network header. */
  get addresses(): HeaderPart {
    const { source } = this.packet;
    return {
      offset: source.length === 4 ? 12 : 8,
      bytes: Uint8Array.of(...source, ...this.destination),
    };
  }

  /** What is known of the transport header: the destination port. */
  get destinationPort(): HeaderPart {
    return { offset: 2, bytes: Uint8Array.of(this.port >> 8, this.port & 0xff) };
  }
}
