import { setTimeout as sleep } from 'node:timers/promises';
import { encodeAddress } from '../../src/forwarder/socket-address.ts';
import { loadSockets } from '../../src/native/koffi-sockets.ts';
import {
  AF_INET,
  EINPROGRESS,
  SO_REUSEADDR,
  SOCK_STREAM,
  SOL_SOCKET,
  type Sockets,
} from '../../src/native/sockets.ts';

export interface ConnectionLoad {
  /** Connections that were made and closed again, and others that were not accepted in time. */
  readonly connections: number;
  readonly failed: number;
  readonly perSecond: number;
  /** CPU time of this process, with the kernel's work for it: both ends of each connection. */
  readonly cpuMs: number;
}

const tickMs = 1;
/** Beyond this many at a time, the machine is too slow for the rate. */
const mostPerTick = 50;
const patienceMs = 3_000;
const backlog = 4_096;

/**
 * Both ends of many short connections in one process, without Node's streams, which cost more than the kernel's part.
 * The server closes each connection first, then the client does.
 */
export class Connections {
  readonly #sockets: Sockets;
  readonly #listener: number;
  readonly #peer = new Uint8Array(16);
  /** Clients that wait for their server. */
  readonly #clients: number[] = [];
  #made = 0;

  static async listen(ip: string, port: number): Promise<Connections> {
    const sockets = await loadSockets();
    const fd = checked('socket', sockets.socket(AF_INET, SOCK_STREAM));
    checked('setsockopt', sockets.setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1));
    checked('bind', sockets.bind(fd, encodeAddress({ ip, port })));
    checked('listen', sockets.listen(fd, backlog));
    return new Connections(sockets, fd);
  }

  private constructor(sockets: Sockets, listener: number) {
    this.#sockets = sockets;
    this.#listener = listener;
  }

  /** Makes connections at a steady rate, as far as the machine can. */
  async make(ip: string, port: number, perSecond: number, seconds: number): Promise<ConnectionLoad> {
    const to = encodeAddress({ ip, port });
    const cpu = process.cpuUsage();
    const begun = performance.now();
    const before = this.#made;
    let started = 0;
    for (;;) {
      const elapsed = performance.now() - begun;
      if (elapsed >= seconds * 1000) break;
      const due = Math.min((elapsed * perSecond) / 1000, started + mostPerTick);
      for (; started < due; started++) this.#connect(to);
      this.#accept();
      await sleep(tickMs);
    }
    const elapsed = performance.now() - begun;
    await this.#drain();
    const { user, system } = process.cpuUsage(cpu);
    const connections = this.#made - before;
    return {
      connections,
      failed: started - connections,
      perSecond: connections / (elapsed / 1000),
      cpuMs: (user + system) / 1000,
    };
  }

  close(): void {
    this.#sockets.close(this.#listener);
  }

  #connect(to: Uint8Array): void {
    const fd = checked('socket', this.#sockets.socket(AF_INET, SOCK_STREAM));
    const result = this.#sockets.connect(fd, to);
    if (result === 0 || result === -EINPROGRESS) this.#clients.push(fd);
    else this.#sockets.close(fd);
  }

  /** Closes every connection that was accepted, and the client that has waited longest. */
  #accept(): void {
    for (;;) {
      const fd = this.#sockets.accept(this.#listener, this.#peer);
      if (fd < 0) return;
      this.#sockets.close(fd);
      const client = this.#clients.shift();
      if (client === undefined) continue;
      this.#sockets.close(client);
      this.#made++;
    }
  }

  async #drain(): Promise<void> {
    const begun = performance.now();
    while (this.#clients.length > 0 && performance.now() - begun < patienceMs) {
      this.#accept();
      await sleep(tickMs);
    }
    for (const fd of this.#clients.splice(0)) this.#sockets.close(fd);
  }
}

function checked(call: string, result: number): number {
  if (result < 0) throw new Error(`${call}: errno ${-result}`);
  return result;
}
