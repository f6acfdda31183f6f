import { type Family, formatIP } from '../../../src/model/ip.ts';
import { loadLibc } from '../../../src/native/koffi-libc.ts';
import { type Libc, SOCK_RAW } from '../../../src/native/libc.ts';
import type { Question, UnreachableWitness } from './traffic.ts';

const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_ICMP = 1;
const IPPROTO_ICMPV6 = 58;
const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 };

/** The packet that an ICMP "port unreachable" is about. */
interface Unreachable {
  readonly protocol: number;
  /** Sender and destination of the packet. */
  readonly source: string;
  readonly address: string;
  readonly port: number;
}

interface Watcher {
  readonly question: Question;
  readonly seen: () => void;
}

/**
 * Receives every ICMP error in this namespace and calls the watchers that a "port unreachable" concerns. A socket's
 * own ECONNREFUSED is not enough: it does not say whether a reset caused it, and it is a second late if the socket was
 * locked when the error arrived.
 */
export class IcmpWitness implements UnreachableWitness {
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

  watch(question: Question, seen: () => void): () => void {
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
        const unreachable = family === 'IPv4' ? parseICMP(message) : parseICMPv6(message);
        if (unreachable) this.#notify(unreachable);
      }
    }
  }

  #notify({ protocol, source, address, port }: Unreachable): void {
    for (const { question, seen } of [...this.#watchers]) {
      const isAbout =
        question.address === address &&
        (question.source ?? source) === source &&
        question.port === port &&
        protocolNumbers[question.transport] === protocol;
      if (isAbout) seen();
    }
  }
}

/** An IPv4 raw socket delivers the IP header too. Type 3, code 3: port unreachable. */
function parseICMP(packet: Uint8Array): Unreachable | undefined {
  const icmp = packet.subarray(headerLength(packet));
  const inner = icmp.subarray(8);
  if (icmp[0] !== 3 || icmp[1] !== 3 || inner.length < 24) return undefined;
  const [protocol = 0] = inner.subarray(9);
  return {
    protocol,
    source: formatIP({ family: 'IPv4', bytes: inner.slice(12, 16) }),
    address: formatIP({ family: 'IPv4', bytes: inner.slice(16, 20) }),
    port: portAt(inner, headerLength(inner) + 2),
  };
}

/** Type 1, code 4: port unreachable. */
function parseICMPv6(icmp: Uint8Array): Unreachable | undefined {
  const inner = icmp.subarray(8);
  if (icmp[0] !== 1 || icmp[1] !== 4 || inner.length < 44) return undefined;
  const [protocol = 0] = inner.subarray(6);
  return {
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
