import { type Family, formatIP } from '../../../src/model/ip.ts';
import { loadLibc } from '../../../src/native/koffi-libc.ts';
import { type Libc, SOCK_RAW } from '../../../src/native/libc.ts';
import type { IcmpErrors, Question } from './traffic.ts';

const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_ICMP = 1;
const IPPROTO_ICMPV6 = 58;
/** By type and code. */
const kindsOfICMP: ReadonlyMap<string, ErrorKind> = new Map([
  ['3/3', 'rejected'],
  ['11/0', 'expired'],
]);
const kindsOfICMPv6: ReadonlyMap<string, ErrorKind> = new Map([
  ['1/4', 'rejected'],
  ['3/0', 'expired'],
]);
const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 };

/** "Port unreachable" or "time exceeded". */
type ErrorKind = 'rejected' | 'expired';

/** An ICMP error, and the packet that it is about. */
interface IcmpError {
  readonly kind: ErrorKind;
  readonly protocol: number;
  /** Sender and destination of the packet. */
  readonly source: string;
  readonly address: string;
  readonly port: number;
}

interface Watcher {
  readonly question: Question;
  readonly seen: (kind: ErrorKind) => void;
}

/**
 * Receives every ICMP error in this namespace and calls the watchers that it concerns. A socket's
 * own ECONNREFUSED is not enough: it does not say whether a reset caused it, and it is a second late if the socket was
 * locked when the error arrived.
 */
export class IcmpWitness implements IcmpErrors {
  readonly #libc: Libc;
  readonly #sockets: readonly { readonly fd: number; readonly family: Family }[];
  readonly #watchers = new Set<Watcher>();
  readonly #buffer = new Uint8Array(2048);
  readonly #sender = new Uint8Array(28);

  static async open(): Promise<IcmpWitness> {
    return new IcmpWitness(await loadLibc());
  }

  private constructor(libc: Libc) {
    this.#libc = libc;
    this.#sockets = [
      { fd: libc.socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), family: 'IPv4' },
      { fd: libc.socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), family: 'IPv6' },
    ];
    for (const { fd } of this.#sockets) libc.watch(fd, () => this.drain());
  }

  watch(question: Question, seen: Watcher['seen']): () => void {
    const watcher = { question, seen };
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  drain(): void {
    for (const { fd, family } of this.#sockets) {
      for (;;) {
        const length = this.#libc.receive(fd, this.#buffer, this.#sender);
        if (length === undefined) break;
        const message = this.#buffer.subarray(0, Math.min(length, this.#buffer.length));
        const error = family === 'IPv4' ? parseICMP(message) : parseICMPv6(message);
        if (error) this.#notify(error);
      }
    }
  }

  #notify({ kind, protocol, source, address, port }: IcmpError): void {
    for (const { question, seen } of [...this.#watchers]) {
      const isAbout =
        question.address === address &&
        (question.source ?? source) === source &&
        question.port === port &&
        (kind === 'rejected' || question.datagram?.ttl !== undefined) &&
        protocolNumbers[question.transport] === protocol;
      if (isAbout) seen(kind);
    }
  }
}

/** An IPv4 raw socket delivers the IP header too. */
function parseICMP(packet: Uint8Array): IcmpError | undefined {
  const icmp = packet.subarray(headerLength(packet));
  const inner = icmp.subarray(8);
  const kind = kindsOfICMP.get(`${icmp[0]}/${icmp[1]}`);
  if (!kind || inner.length < 24) return undefined;
  const [protocol = 0] = inner.subarray(9);
  return {
    kind,
    protocol,
    source: formatIP({ family: 'IPv4', bytes: inner.slice(12, 16) }),
    address: formatIP({ family: 'IPv4', bytes: inner.slice(16, 20) }),
    port: portAt(inner, headerLength(inner) + 2),
  };
}

function parseICMPv6(icmp: Uint8Array): IcmpError | undefined {
  const inner = icmp.subarray(8);
  const kind = kindsOfICMPv6.get(`${icmp[0]}/${icmp[1]}`);
  if (!kind || inner.length < 44) return undefined;
  const [protocol = 0] = inner.subarray(6);
  return {
    kind,
    protocol,
    source: formatIP({ family: 'IPv6', bytes: inner.slice(8, 24) }),
    address: formatIP({ family: 'IPv6', bytes: inner.slice(24, 40) }),
    port: portAt(inner, 42),
  };
}

function headerLength([first = 0]: Uint8Array): number {
  return (first & 15) * 4;
}

function portAt(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset] ?? 0) << 8) | (bytes[offset + 1] ?? 0);
}
