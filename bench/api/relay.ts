import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Passes connections on to an API server and counts what it sends. */
export class CountingRelay {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Bytes from the API server, as on the wire: with TLS and headers. */
  received = 0;
  connections = 0;
  /** When the API server last sent something, by `performance.now()`. */
  lastAt = 0;

  static async open(address: string, target: URL): Promise<CountingRelay> {
    const relay = new CountingRelay(Number(target.port));
    relay.#server.listen(Number(target.port), address);
    await once(relay.#server, 'listening');
    return relay;
  }

  private constructor(port: number) {
    this.#server = createServer((client) => this.#pass(client, connect(port, '127.0.0.1')));
  }

  /** Breaks all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  #pass(client: Socket, server: Socket): void {
    this.connections++;
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
    server.on('data', (bytes) => {
      this.received += bytes.length;
      this.lastAt = performance.now();
    });
  }
}
