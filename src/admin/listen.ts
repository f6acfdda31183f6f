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

/** Where to try to listen. Without a host, Node takes `::`, and `0.0.0.0` when that fails for any reason. */
export type ListenTarget = Partial<Pick<ListenAddress, 'host'>> & Pick<ListenAddress, 'port'>;

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
 * Returns where to listen, in the order in which to try. A wildcard of either family means both families, as in Go, or only
 * IPv4 if the kernel has no IPv6. The first of its targets has no host, since Node takes 6 ms of a start to find out
 * that `::` is an IPv6 address.
 */
export function listenTargets({ host, port }: ListenAddress): readonly ListenTarget[] {
  const isWildcard = /^[0:.]+$/.test(host);
  if (!isWildcard) return [{ host, port }];
  return [{ port }, { host: '::', port }, { host: '0.0.0.0', port }];
}

/** Errors that mean "this kernel has no IPv6" rather than "this address is in use". */
const noIPv6 = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT']);

class Listening implements Serving {
  readonly #options: ServeOptions;
  readonly #targets: readonly ListenTarget[];
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
    this.#listen(this.#targets);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#retry?.cancel();
    const server = this.#server;
    this.#server = undefined;
    if (server) await server.stop(this.#options.clock);
  }

  #listen([target, ...others]: readonly ListenTarget[]): void {
    const { handler, capacity, makeServer } = this.#options;
    const server = makeServer?.(handler, capacity) ?? new HttpServer(handler, capacity);
    this.#server = server;
    const tryOthers = () => {
      server.close();
      this.#listen(others);
    };
    const isVague = target?.host === undefined;
    server.once('listening', () => {
      // Try the other ways, to learn whether the IPv6 port is taken or the kernel has only IPv4.
      if (isVague && !this.#closed && familyOf(server) === 'IPv4') tryOthers();
      else this.#listening(server);
    });
    server.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#server !== server) return;
      const isNoReason = isVague || noIPv6.has(error.code ?? '');
      if (others.length > 0 && !server.listening && isNoReason) tryOthers();
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

function familyOf(server: HttpServer): string | undefined {
  const address = server.address();
  return typeof address === 'object' ? address?.family : undefined;
}
