import { Server } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import type { Capacity } from './capacity.ts';
import { Connection } from './connection.ts';
import type { RequestListener } from './exchange.ts';
import { Line } from './turns.ts';

/** How many connections the kernel keeps until they are accepted, if its own limit allows it. */
export const backlog = 4096;

/**
 * An HTTP server. Whatever its clients do, it takes a bounded share of time and memory from the rest of the program, and
 * a client that asks one question gets its answer.
 */
export class HttpServer extends Server {
  readonly #open = new Set<Connection>();
  readonly #line = new Line();

  constructor(listener: RequestListener, capacity: Capacity) {
    super({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const connection = new Connection(socket, listener, this.#line, capacity);
      this.#open.add(connection);
      socket.once('close', () => this.#open.delete(connection));
    });
  }

  /** Stops listening and closes connections: idle ones now, the others after their answer or the grace period. */
  stop(clock: Clock, graceMs = 1000): Promise<void> {
    const closed = new Promise<void>((resolve) => this.close(() => resolve()));
    for (const connection of this.#open) connection.endAfterAnswer();
    const force = clock.setTimeout(() => this.closeAllConnections(), graceMs);
    return closed.finally(() => force.cancel());
  }

  closeAllConnections(): void {
    for (const connection of this.#open) connection.destroy();
  }
}
