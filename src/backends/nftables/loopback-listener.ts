import { connect, createServer, type Server, type Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Clock } from '../../lib/clock.ts';

export interface LoopbackEndpoint {
  readonly ip: string;
  readonly port: number;
}

export interface LoopbackListenerOptions {
  readonly clock: Clock;
  readonly random: () => number;
}

const dialTimeoutMs = 5_000;

/** One node port on one loopback address: accepts connections and passes them on to an endpoint. */
export class LoopbackListener {
  readonly port: number;
  readonly #address: string;
  readonly #options: LoopbackListenerOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #endpoints: readonly LoopbackEndpoint[] = [];
  #affinitySeconds = 0;
  /** All clients have the same address, so one choice is remembered for all. */
  #pin: { readonly endpoint: LoopbackEndpoint; usedAt: number } | undefined;

  constructor(address: string, port: number, options: LoopbackListenerOptions) {
    this.#address = address;
    this.port = port;
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#server !== undefined;
  }

  /** New connections go to these endpoints; those that are open stay where they are. */
  serve(endpoints: readonly LoopbackEndpoint[], affinitySeconds: number): void {
    this.#endpoints = endpoints;
    if (affinitySeconds !== this.#affinitySeconds) this.#pin = undefined;
    this.#affinitySeconds = affinitySeconds;
  }

  /** Begins to listen; rejects when the port cannot be had. */
  async open(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, this.#address, resolve);
    });
    server.on('error', () => this.close());
    this.#server = server;
  }

  /** Ends listening and every connection. */
  close(): void {
    this.#server?.close();
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(client: Socket): void {
    this.#track(client);
    const { ip, port } = this.#choose();
    const endpoint = this.#track(connect({ host: ip, port, allowHalfOpen: true, timeout: dialTimeoutMs }));
    const giveUp = () => {
      endpoint.destroy();
      client.destroy();
    };
    endpoint.once('timeout', giveUp);
    endpoint.once('error', giveUp);
    endpoint.once('connect', () => {
      endpoint.setTimeout(0);
      // What ends one direction closes only that half; an error ends both.
      pipeline(client, endpoint, (error) => error && giveUp());
      pipeline(endpoint, client, (error) => error && giveUp());
    });
  }

  /** At random, or as remembered. */
  #choose(): LoopbackEndpoint {
    const now = this.#options.clock.monotonic();
    const pin = this.#pin;
    const isAlive = pin && now - pin.usedAt <= this.#affinitySeconds * 1000;
    const pinned = isAlive ? this.#endpoints.find((e) => isSame(e, pin.endpoint)) : undefined;
    const index = Math.floor(this.#options.random() * this.#endpoints.length);
    const endpoint = pinned ?? this.#endpoints[index];
    if (!endpoint) throw new Error('a listener without endpoints');
    if (this.#affinitySeconds > 0) this.#pin = { endpoint, usedAt: now };
    return endpoint;
  }

  #track(socket: Socket): Socket {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    return socket;
  }
}

function isSame(a: LoopbackEndpoint, b: LoopbackEndpoint): boolean {
  return a.ip === b.ip && a.port === b.port;
}
