import type { Capacity } from '../http/capacity.ts';
import type { RequestListener } from '../http/exchange.ts';
import { backlog, HttpServer } from '../http/server.ts';

/** Listens at one port on several addresses of a family. */
export class PortListener {
  readonly #listener: RequestListener;
  readonly #capacity: Capacity;
  readonly #servers: HttpServer[] = [];

  constructor(listener: RequestListener, capacity: Capacity) {
    this.#listener = listener;
    this.#capacity = capacity;
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
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections();
    }
  }

  #listen(host: string, port: number): Promise<void> {
    const server = new HttpServer(this.#listener, this.#capacity);
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.once('listening', resolve);
      // Stays after the bind: a failing accept then loses only its connection.
      server.on('error', reject);
      // The other family has its own listener on this port.
      server.listen({ host, port, ipv6Only: true, backlog });
    });
  }
}
