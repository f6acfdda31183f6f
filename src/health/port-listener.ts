import { createServer, type Server, type Socket } from 'node:net';

/** One port on several addresses of a family, with its connections. */
export class PortListener {
  readonly #onConnection: (socket: Socket) => void;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(onConnection: (socket: Socket) => void) {
    this.#onConnection = onConnection;
  }

  /** Rejects when any address cannot be bound; those that could stay open until `close`. */
  async open(addresses: readonly string[], port: number): Promise<void> {
    // All of them are awaited: a bind still under way could otherwise come after `close`.
    const results = await Promise.allSettled(addresses.map((host) => this.#listen(host, port)));
    const failed = results.find((result) => result.status === 'rejected');
    if (failed) throw failed.reason;
  }

  /** Ends the port and its connections at once. */
  close(): void {
    for (const server of this.#servers) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #listen(host: string, port: number): Promise<void> {
    const server = createServer((socket) => this.#accept(socket));
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.once('listening', resolve);
      // After a successful bind the promise is settled, and a failing accept only loses that connection.
      server.on('error', reject);
      // The other family has a listener of its own on the same port.
      server.listen({ host, port, ipv6Only: true });
    });
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    this.#onConnection(socket);
  }
}
