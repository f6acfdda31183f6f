import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import type { Clock, Timer } from '../lib/clock.ts';
import { listenErrorText } from '../lib/listen-error.ts';
import type { Logger } from '../obs/log.ts';
import { closeServer, createHttpServer } from './http.ts';

/** How long to wait after a failure before listening again. */
const retryMs = 5000;

export interface ServeOptions {
  /** What is served, for messages: "proxy healthz", "metrics". */
  readonly name: string;
  /** `IP:port`, IPv6 in brackets. Throws at once when it is not. */
  readonly address: string;
  /** Give up on the first failure and say so, instead of trying again every five seconds. */
  readonly hardFail: boolean;
  readonly onHardFail: (error: Error) => void;
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onListening?: (port: number) => void;
  /** Stands in for the real server where a test needs a failure that no test machine can provoke. */
  readonly makeServer?: typeof createHttpServer;
}

export interface Serving {
  /** The port in use; undefined while there is none. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

/** Serves HTTP on an address until closed, coming back from failures to bind and from later ones. */
export function serveWithRetry(options: ServeOptions): Serving {
  const listening = new Listening(options);
  listening.start();
  return listening;
}

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

interface ListenTarget extends ListenAddress {
  readonly ipv6Only: boolean;
}

/**
 * Reads `IP:port`. Every number may have leading zeros and those of IPv4 are decimal, as everywhere in Kubernetes; the
 * port may have a plus sign.
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
 * What to try, in order. A wildcard of either family means both, as in Go; a kernel without IPv6 leaves the
 * second choice.
 */
export function listenTargets({ host, port }: ListenAddress): readonly [ListenTarget, ...ListenTarget[]] {
  const wildcard = /^[0:.]+$/.test(host);
  if (!wildcard) return [{ host, port, ipv6Only: false }];
  return [
    { host: '::', port, ipv6Only: false },
    { host: '0.0.0.0', port, ipv6Only: false },
  ];
}

/** Errors that mean "this kernel has no IPv6" rather than "this address is taken". */
const noIPv6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT']);

class Listening implements Serving {
  readonly #options: ServeOptions;
  readonly #targets: readonly [ListenTarget, ...ListenTarget[]];
  #server: Server | undefined;
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
    if (server) await closeServer(server, this.#options.clock);
  }

  #listen(target: ListenTarget, fallback?: ListenTarget): void {
    const server = (this.#options.makeServer ?? createHttpServer)(this.#options.handler);
    this.#server = server;
    server.once('listening', () => this.#listening(server));
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#server !== server) return;
      if (fallback && !server.listening && noIPv6.has(error.code ?? '')) this.#listen(fallback);
      else this.#failed(server, error);
    });
    server.listen(target);
  }

  #listening(server: Server): void {
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

  #failed(server: Server, cause: NodeJS.ErrnoException): void {
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
    logger.error(error, 'Will listen again', { server: name, address, after: `${retryMs / 1000}s` });
    this.#retry = clock.setTimeout(() => this.start(), retryMs);
  }
}
