import type { Sockets } from '../native/sockets.ts';
import { Direction, type RelayContext, type Stream } from './direction.ts';
import type { EventLoop } from './event-loop.ts';
import type { Traffic } from './traffic.ts';

/**
 * Passes bytes both ways between a client's connection and an endpoint's. The end of one direction closes only that half
 * of the other side; an error resets both, so that neither peer takes it for a regular end.
 */
export class TCPRelay {
  readonly #context: RelayContext;
  readonly #client: Stream;
  readonly #server: Stream;
  readonly #inward: Direction;
  readonly #outward: Direction;
  readonly #onEnd: () => void;
  #isQueued = false;
  #isOver = false;

  constructor(
    context: RelayContext,
    client: Stream,
    server: Stream,
    traffic: readonly [Traffic, Traffic],
    onEnd: () => void,
  ) {
    const [service, endpoint] = traffic;
    this.#context = context;
    this.#client = client;
    this.#server = server;
    this.#onEnd = onEnd;
    this.#inward = new Direction(context, client, server, (bytes) => {
      service.bytesIn += bytes;
      endpoint.bytesIn += bytes;
    });
    this.#outward = new Direction(context, server, client, (bytes) => {
      service.bytesOut += bytes;
      endpoint.bytesOut += bytes;
    });
  }

  /** Continues after a stream became ready. */
  resume(): void {
    this.#isQueued = false;
    this.#advance(this.#inward, this.#server);
    this.#advance(this.#outward, this.#client);
    // While there is more to pass on, reading or writing will find the error.
    if (!this.#isQueued && this.#isBroken()) this.end(true);
  }

  /** Closes both sides, with a reset after an error. */
  end(reset: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#inward.release();
    this.#outward.release();
    const { sockets, loop } = this.#context;
    for (const stream of [this.#client, this.#server]) closeStream(sockets, loop, stream, reset);
    this.#onEnd();
  }

  /**
   * Finds errors that reading and writing miss: a direction that is finished, or waits for the other side, does
   * neither. Bytes received from a broken endpoint are still passed to the client first, however slow it is.
   */
  #isBroken(): boolean {
    return this.#client.hasFailed || (this.#server.hasFailed && this.#outward.isFinished);
  }

  #advance(direction: Direction, receiver: Stream): void {
    if (this.#isOver || direction.isFinished) return;
    switch (direction.pump()) {
      case 'failed':
        this.end(true);
        return;
      case 'finished':
        if (this.#inward.isFinished && this.#outward.isFinished) {
          this.end(false);
          return;
        }
        // If the receiver is gone altogether, the other direction finds out.
        this.#context.sockets.shutdownWrite(receiver.fd);
        return;
      case 'more':
        if (!this.#isQueued) this.#context.loop.later(this);
        this.#isQueued = true;
        return;
      case 'waiting':
    }
  }
}

/** Closes a descriptor and stops watching it. */
export function closeStream(sockets: Sockets, loop: EventLoop, stream: Stream, reset: boolean): void {
  if (reset) sockets.abortOnClose(stream.fd);
  if (stream.token >= 0) loop.unwatch(stream.token);
  sockets.close(stream.fd);
}
