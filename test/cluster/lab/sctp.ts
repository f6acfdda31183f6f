import { existsSync } from 'node:fs';
import { SystemError } from '../../../src/native/system-error.ts';
import { boundSocket, libc, socketAddress } from './native-socket.ts';
import { nextSourcePort } from './source-port.ts';
import type { IcmpErrors, Outcome, Question } from './traffic.ts';

const SOCK_STREAM = 1;
const SOCK_NONBLOCK = 0o4000;
const IPPROTO_SCTP = 132;
/** A socket option that connects the socket. */
const SCTP_SOCKOPT_CONNECTX = 110;
const EINPROGRESS = 115;

/** The reason why SCTP cannot be used here; undefined when it can. */
export function sctpUnavailable(): string | undefined {
  return existsSync('/proc/net/sctp') ? undefined : 'this kernel has no SCTP sockets, or has not loaded them';
}

/**
 * Opens a socket at one address, on which a server may listen. A socket at all addresses would announce them all when
 * it connects, and its peer could then bypass the proxy.
 */
export function sctpSocket(port: number, address: string, flags = 0): number {
  return boundSocket(SOCK_STREAM | flags, IPPROTO_SCTP, port, address);
}

/** Sends one question on a new association. `parse` decodes the answer. */
export async function askSCTP(
  question: Question,
  witness: IcmpErrors,
  parse: (text: string) => Outcome,
): Promise<Outcome> {
  const { address, port, source, sourcePort = nextSourcePort(), timeoutMs } = question;
  const anywhere = address.includes(':') ? '::' : '0.0.0.0';
  const fd = sctpSocket(sourcePort, source ?? anywhere, SOCK_NONBLOCK);
  startConnecting(fd, socketAddress(address, port));
  return new Promise((resolve) => {
    let isOpen = true;
    const finish = (outcome: Outcome): void => {
      if (!isOpen) return;
      isOpen = false;
      clearTimeout(timer);
      stopWatching();
      watch.close();
      libc.close(fd);
      resolve(outcome);
    };
    const timer = setTimeout(() => finish({ kind: 'silence' }), timeoutMs);
    const stopWatching = witness.watch(question, (kind) => finish({ kind }));
    const watch = libc.watch(fd, () => {
      witness.drain();
      if (!isOpen) return;
      const outcome = received(fd, parse);
      if (outcome) finish(outcome);
    });
  });
}

function startConnecting(fd: number, address: Uint8Array): void {
  try {
    libc.setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, address);
  } catch (error) {
    if (error instanceof SystemError && error.errno === EINPROGRESS) return;
    libc.close(fd);
    throw error;
  }
}

/** The answer or the error that has arrived; undefined while the association is being set up. */
function received(fd: number, parse: (text: string) => Outcome): Outcome | undefined {
  const buffer = new Uint8Array(1024);
  try {
    const length = libc.receive(fd, buffer, new Uint8Array(28));
    if (length === undefined) return undefined;
    return length === 0
      ? { kind: 'failed', code: 'END' }
      : parse(Buffer.from(buffer.subarray(0, length)).toString());
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    return error.code === 'ENOTCONN' ? undefined : { kind: 'failed', code: error.code };
  }
}
