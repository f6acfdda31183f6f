import {
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSGERR_ATTR_MSG,
  NLMSGERR_ATTR_OFFS,
} from '../../src/kernel/netlink/constants.ts';
import { type NetlinkMessage, readMessages } from '../../src/kernel/netlink/reader.ts';
import type { Datagram, NetlinkTransport } from '../../src/kernel/netlink/transport.ts';
import { MessageWriter } from '../../src/kernel/netlink/writer.ts';
import { hostLittleEndian } from '../../src/native/byte-order.ts';
import type { Watch } from '../../src/native/libc.ts';
import { SystemError } from '../../src/native/system-error.ts';

/** An answer of the fake kernel: a datagram, or an error that receiving it throws. */
export type FakeReply = Uint8Array | Datagram | SystemError;

const EBADF = 9;
const ENOBUFS = 105;

/**
 * A transport whose kernel is a function from the messages of a request to answers. Tests use it to drive everything
 * above the transport.
 */
export class FakeNetlink implements NetlinkTransport {
  readonly portId: number;
  /** Copies of the datagrams that were sent. */
  readonly sent: Uint8Array[] = [];
  readonly groups = new Set<number>();
  filter: Uint8Array | undefined;
  closed = false;
  readonly #answer: (request: readonly NetlinkMessage[], kernel: FakeNetlink) => readonly FakeReply[];
  readonly #queue: FakeReply[] = [];
  readonly #watchers = new Set<() => void>();

  constructor(
    answer: (request: readonly NetlinkMessage[], kernel: FakeNetlink) => readonly FakeReply[] = () => [],
    portId = 4711,
  ) {
    this.#answer = answer;
    this.portId = portId;
  }

  async send(bytes: Uint8Array): Promise<void> {
    const copy = bytes.slice();
    this.sent.push(copy);
    this.#queue.push(...this.#answer(readMessages(copy), this));
  }

  receive(): Datagram | undefined {
    if (this.closed) throw new SystemError('netlink socket', EBADF);
    const reply = this.#queue.shift();
    if (reply instanceof SystemError) throw reply;
    return reply instanceof Uint8Array ? { bytes: reply, sender: 0 } : reply;
  }

  async receiveInWorker(): Promise<Datagram | undefined> {
    return this.receive();
  }

  watch(onReadable: () => void): Watch {
    this.#watchers.add(onReadable);
    if (this.#queue.length > 0) queueMicrotask(() => this.#wake());
    return { close: () => this.#watchers.delete(onReadable) };
  }

  join(group: number): void {
    this.groups.add(group);
  }

  leave(group: number): void {
    this.groups.delete(group);
  }

  attachFilter(program: Uint8Array): void {
    this.filter = program;
  }

  close(): void {
    this.closed = true;
  }

  /** Delivers an unrequested datagram: a notification or a late answer. */
  emit(...replies: readonly FakeReply[]): void {
    this.#queue.push(...replies);
    this.#wake();
  }

  /** Number of callbacks that wait for a datagram; for leak checks. */
  get watchers(): number {
    return this.#watchers.size;
  }

  #wake(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** The error that receiving throws when the kernel dropped messages. */
export function overrunError(): SystemError {
  return new SystemError('recvfrom', ENOBUFS);
}

/** A datagram with one message, addressed to `port`. */
export function fakeMessage(
  header: { type: number; flags?: number; sequence: number; port: number },
  write: (writer: MessageWriter) => void = () => {},
): Uint8Array {
  const writer = new MessageWriter();
  writer.beginMessage(header.type, header.flags ?? 0, header.sequence);
  write(writer);
  writer.endMessage();
  const bytes = writer.bytes();
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(12, header.port, hostLittleEndian);
  return bytes;
}

/** An acknowledgement: success, or a refusal with the kernel's text and the offset of the refused attribute. */
export function fakeAck(
  to: { sequence: number; port: number },
  errno = 0,
  extended: { text?: string; offset?: number } = {},
): Uint8Array {
  const header = { type: NLMSG_ERROR, flags: NLM_F_CAPPED | NLM_F_ACK_TLVS, ...to };
  return fakeMessage(header, (writer) => {
    const status = new Uint8Array(4 + 16);
    new DataView(status.buffer).setInt32(0, -errno, hostLittleEndian);
    writer.raw(status);
    if (extended.text !== undefined) writer.string(NLMSGERR_ATTR_MSG, extended.text);
    if (extended.offset !== undefined) writer.u32(NLMSGERR_ATTR_OFFS, extended.offset);
  });
}

/** The end of a dump. */
export function fakeDone(to: { sequence: number; port: number }, errno = 0): Uint8Array {
  return fakeMessage({ type: NLMSG_DONE, flags: NLM_F_MULTI, ...to }, (writer) => {
    const status = new Uint8Array(4);
    new DataView(status.buffer).setInt32(0, -errno, hostLittleEndian);
    writer.raw(status);
  });
}
