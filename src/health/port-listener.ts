import { createServer, type Server, type Socket } from 'node:net';

/** Listens at one port on several addresses of a family. */
export class PortListener {
  readonly #onConnection: (socket: Socket) => void;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(onConnection: (socket: Socket) => void) {
    this.#onConnection = onConnection;
  }

  /** Rejects when an address cannot be bound; the others stay open until `close`. */
  async open(addresses: readonly string[], port: number): Promise<void> {
    // Wait for all: otherwise a bind under way could finish after `close`.
    const results = await Promise.allSettled(addresses.map((host) => this.#listen(host, port)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Closes the port and its connections at once. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #listen(host: string, port: number): Promise<void> {
    const server = createServer((socket) => this.#accept(socket));
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.once('listening', resolve);
      // Stays after the bind: a failing accept then loses only its connection.
      server.on('error', reject);
      // The other family has its own listener on this port.
      server.listen({ host, port, ipv6Only: true });
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    this.#onConnection(socket);
  }
}
