import type { ConntrackClient } from '../kernel/ct/client.ts';
import { TCP_ESTABLISHED, type TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { SocketClient } from '../kernel/diag/client.ts';
import type { SocketAddresses } from '../kernel/diag/codec.ts';
import { isNetlinkError } from '../kernel/netlink/error.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import { type AddressKey, addressKeyFrom, keyBytes, keyText } from '../model/address-key.ts';
import { type Family, joinHostPort } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';

/** The kernel, opened for one pass. */
export interface DepartedSocketsKernel {
  readonly flows: Pick<ConntrackClient, 'forEachFilteredFlow' | 'close'>;
  readonly sockets: SocketClient;
  /** Addresses of this node. */
  readonly ownAddresses: readonly string[];
}

export interface DepartedSocketsOptions {
  readonly family: Family;
  readonly open: () => Promise<DepartedSocketsKernel>;
  readonly logger: Logger;
}

/** Endpoints that are gone, by `ip:port`. */
type Departed = ReadonlyMap<string, unknown>;

/**
 * Ends the TCP connections that processes of this node have to departed endpoints, at once: without it they end at their
 * next packet, as those of others do. The connection tracking table says which endpoint a connection goes to.
 */
export class DepartedSockets {
  readonly #options: DepartedSocketsOptions;
  /** Departed endpoints that a pass has taken up. */
  readonly #known = new Set<string>();
  readonly #pending = new Set<string>();
  #pass: Promise<void> | undefined;
  /** The kernel cannot do it. */
  #isImpossible = false;

  constructor(options: DepartedSocketsOptions) {
    this.#options = options;
  }

  /** Takes all departed endpoints, live: call it when the kernel resets their connections. Works in the background. */
  follow(departed: Departed): void {
    if (this.#isImpossible) return;
    for (const id of this.#known) if (!departed.has(id)) this.#known.delete(id);
    for (const id of departed.keys()) {
      if (this.#known.has(id)) continue;
      this.#known.add(id);
      this.#pending.add(id);
    }
    if (this.#pending.size > 0) this.#pass ??= this.#run(departed);
  }

  /** Waits for a pass under way. */
  async close(): Promise<void> {
    this.#pending.clear();
    await this.#pass;
  }

  async #run(departed: Departed): Promise<void> {
    const { family, logger } = this.#options;
    try {
      while (this.#pending.size > 0) await this.#endAll(this.#takePending(), departed);
    } catch (error) {
      this.#isImpossible = isNetlinkError(error, 'EOPNOTSUPP');
      // Their next packet ends these connections.
      logger.v(2).info('Connections of this node to departed endpoints not ended at once', {
        ipFamily: family,
        error,
      });
    } finally {
      this.#pass = undefined;
    }
  }

  #takePending(): Set<string> {
    const ids = new Set(this.#pending);
    this.#pending.clear();
    return ids;
  }

  async #endAll(ids: ReadonlySet<string>, departed: Departed): Promise<void> {
    const { family, open, logger } = this.#options;
    const { flows, sockets, ownAddresses } = await open();
    try {
      const own = new Set(ownAddresses.map(addressKeyFrom));
      const found = new Map<SocketAddresses, string>();
      await flows.forEachFilteredFlow(
        { family, protocol: protocolNumbers.TCP },
        {
          flow: (flow) => {
            const id = endpointOf(flow, own);
            if (id !== undefined && ids.has(id)) found.set(addressesOf(flow), id);
          },
          restart: () => found.clear(),
        },
      );
      // An endpoint may have come back meanwhile.
      const gone = [...found].filter(([, id]) => departed.has(id)).map(([socket]) => socket);
      if (gone.length === 0) return;
      const ended = await sockets.destroyTCP(gone);
      logger.v(2).info('Ended connections of this node to departed endpoints', { ipFamily: family, ended });
    } finally {
      flows.close();
      sockets.close();
    }
  }
}

/** The endpoint of an open connection of this node that was rewritten; undefined for all other flows. */
function endpointOf(flow: TrackedFlow, own: ReadonlySet<AddressKey | undefined>): string | undefined {
  const { protocol, tcpState, source, destination, answerer, answererPort } = flow;
  if (protocol !== protocolNumbers.TCP || tcpState !== TCP_ESTABLISHED || !own.has(source)) return undefined;
  const isRewritten = destination !== answerer || flow.destinationPort !== answererPort;
  return isRewritten ? joinHostPort(keyText(answerer), answererPort) : undefined;
}

function addressesOf({
  family,
  source,
  sourcePort,
  destination,
  destinationPort,
}: TrackedFlow): SocketAddresses {
  return {
    family,
    source: keyBytes(source),
    sourcePort,
    destination: keyBytes(destination),
    destinationPort,
  };
}
