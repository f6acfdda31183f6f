import {
  formatRealServer,
  formatVirtualServer,
  type ListedRealServer,
  type RealServer,
  type VirtualServer,
} from '../../kernel/ipvs/objects.ts';
import type { Protocol } from '../../model/objects.ts';

/** How to remove a real server: it is gone already, can be deleted now, or has to drain. */
export type Removal = 'gone' | 'delete' | 'drain';

/**
 * Decides about one real server, as the kernel lists it now. TCP waits for the last connection, those in TIME_WAIT
 * included; the other protocols know no end of a connection and are cut off.
 */
export function removalOf(
  protocol: Protocol,
  listed: Pick<ListedRealServer, 'activeConnections' | 'inactiveConnections'> | undefined,
): Removal {
  if (!listed) return 'gone';
  if (protocol !== 'TCP') return 'delete';
  return listed.activeConnections + listed.inactiveConnections === 0 ? 'delete' : 'drain';
}

/** A real server of a virtual server. */
export interface Pair {
  readonly server: VirtualServer;
  readonly real: RealServer;
}

/** Real servers that get no new connections and are deleted when the old ones have ended. Lost with a restart. */
export class TerminationList {
  readonly #servers = new Map<string, Map<string, Pair>>();

  get isEmpty(): boolean {
    return this.#servers.size === 0;
  }

  has(serverKey: string, realKey: string): boolean {
    return this.#servers.get(serverKey)?.has(realKey) ?? false;
  }

  add(pair: Pair): void {
    const key = formatVirtualServer(pair.server);
    const pairs = this.#servers.get(key) ?? new Map<string, Pair>();
    this.#servers.set(key, pairs.set(formatRealServer(pair.real), pair));
  }

  drop(serverKey: string, realKey: string): void {
    const pairs = this.#servers.get(serverKey);
    pairs?.delete(realKey);
    if (pairs?.size === 0) this.#servers.delete(serverKey);
  }

  /** A copy, so that some may be dropped on the way. */
  pairs(): Pair[] {
    return [...this.#servers.values()].flatMap((pairs) => [...pairs.values()]);
  }
}
