import { isIP } from 'node:net';
import type { Capacity } from '../http/capacity.ts';
import type { RequestListener } from '../http/exchange.ts';
import { backlog, HttpServer } from '../http/server.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { listenErrorText } from '../lib/listen-error.ts';
import type { Logger } from '../obs/log.ts';

const retryMs = 5000;

export interface ServeOptions {
  /** The server's name in messages: "proxy healthz", "metrics". */
  readonly name: string;
  /** `IP:port`, IPv6 in brackets. */
  readonly address: string;
  /** Call `onHardFail` on the first failure instead of trying again every five seconds. */
  readonly hardFail: boolean;
  readonly onHardFail: (error: Error) => void;
  readonly handler: RequestListener;
  /** The bounds that it shares with other servers. */
  readonly capacity: Capacity;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onListening?: (port: number) => void;
  /** Tests replace it to provoke failures. */
  readonly makeServer?: (...args: ConstructorParameters<typeof HttpServer>) => HttpServer;
}

export interface Serving {
  /** The port in use; undefined while the server does not listen. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

/** Serves HTTP on an address until closed; retries after failures. Throws if the address is not an `IP:port`. */
export function serveWithRetry(options: ServeOptions): Serving {
  const listening = new Listening(options);
  listening.start();
  return listening;
}

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Reads `IP:port`; throws if it is anything else. As in Kubernetes, numbers may have leading zeros (and are decimal), and
 * the port may have a plus sign.
 */
export function parseListenAddress(address: string): ListenAddress {
  const [, bracketed, bare, digits = ''] = /^(?:\[([^\]]+)\]|([^:]+)):(\+?\d+)$/.exec(address) ?? [];
  const host = (bracketed ?? bare ?? '').replace(/(^|[:.])0+(?=[\da-f])/gi, '$1');
  const port = Number(digits);
  if (!isIP(host) || digits === '' || port > 65535) {
    throw new Error(`${JSON.stringify(address)} is not an IP:port to listen on`);
  }
  return { host, port };
}

/**
 * Returns the address to listen on, and another one to try if the kernel has no IPv6. A wildcard of either family means
 * both families, as in Go.
 */
export function listenTargets({ host, port }: ListenAddress): readonly [ListenAddress, ListenAddress?] {
  const isWildcard = /^[0:.]+$/.test(host);
  if (!isWildcard) return [{ host, port }];
  return [
    { host: '::', port },
    { host: '0.0.0.0', port },
  ];
}

/** Errors that mean "this kernel has no IPv6" rather than "this address is in use". */
const noIPv6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT']);

class Listening implements Serving {
  readonly #options: ServeOptions;
  readonly #targets: readonly [ListenAddress, ListenAddress?];
  #server: HttpServer | undefined;
  #retry: Timer | undefined;
  #closed = false;

  constructor(options: ServeOptions) {
    this.#options = options;
    this.#targets = listenTargets(parseListenAddress(options.address));
  }

  get port(): number | undefined {
    const address = this.#server?.address();
    return typeof address === 'object' ? address?.port : undefined;
  }

  start(): void {
    this.#listen(this.#targets[0], this.#targets[1]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#retry?.cancel();
    const server = this.#server;
    this.#server = undefined;
    if (server) await server.stop(this.#options.clock);
  }

  #listen(target: ListenAddress, fallback?: ListenAddress): void {
    const { handler, capacity, makeServer } = this.#options;
    const server = makeServer?.(handler, capacity) ?? new HttpServer(handler, capacity);
    this.#server = server;
    server.once('listening', () => this.#listening(server));
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#server !== server) return;
      if (fallback && !server.listening && noIPv6.has(error.code ?? '')) this.#listen(fallback);
      else this.#failed(server, error);
    });
    server.listen({ ...target, backlog });
  }

  #listening(server: HttpServer): void {
    const port = this.port;
    if (this.#closed || port === undefined) {
      // Closed while the bind was under way.
      server.close();
      return;
    }
    const { name, address, logger, onListening } = this.#options;
    logger.info('Serving HTTP', { server: name, address });
    onListening?.(port);
  }

  #failed(server: HttpServer, cause: NodeJS.ErrnoException): void {
    const { name, address, hardFail, onHardFail, clock, logger } = this.#options;
    this.#server = undefined;
    server.close();
    server.closeAllConnections();
    const error = new Error(`failed to start ${name} on ${address}: ${listenErrorText(address, cause)}`, {
      cause,
    });
    if (hardFail) {
      onHardFail(error);
      return;
    }
    logger.error(error, 'Failed to serve HTTP; retrying', {
      server: name,
      address,
      after: `${retryMs / 1000}s`,
    });
    this.#retry = clock.setTimeout(() => this.start(), retryMs);
  }
}
