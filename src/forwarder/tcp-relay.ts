import type { Sockets } from '../native/sockets.ts';
import type { Traffic } from './counters.ts';
import { Direction, type RelayContext, type Stream, streamEvents } from './direction.ts';
import type { EventLoop, ReadyHandler } from './event-loop.ts';

/**
 * An established pair of connections, passing bytes both ways. The end of one direction closes only that half of the
 * other side; an error ends both, with a reset, so that nobody takes it for a regular end.
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

  /** Goes on after a stream became ready for something. */
  resume(): void {
    this.#isQueued = false;
    this.#advance(this.#inward, this.#server);
    this.#advance(this.#outward, this.#client);
    // As long as there is more to pass on, reading or writing finds the error in its turn.
    if (!this.#isQueued && this.#isBroken()) this.end(true);
  }

  /** Ends both sides; `reset` tells them that something went wrong. */
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
   * An error shows in what is read and written, but a direction that is finished, or waits for the other side, does
   * neither. What a broken endpoint still has to say is for the client, who may take its time to hear it.
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
        // A receiver that is gone altogether shows in the other direction.
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

/** Watches a stream and has its owner told; a negative errno value when it cannot be watched. */
export function watchStream(loop: EventLoop, stream: Stream, onReady: () => void): number {
  const handler: ReadyHandler = {
    ready(events) {
      stream.note(events);
      onReady();
    },
  };
  stream.token = loop.watch(stream.fd, streamEvents, handler);
  return stream.token;
}
