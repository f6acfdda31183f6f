import {
  formatRealServer,
  formatVirtualServer,
  type IpvsOperation,
  type ListedRealServer,
  type VirtualServer,
} from '../../kernel/ipvs/objects.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import type { CurrentState } from './current.ts';
import { isAbsent } from './errors.ts';
import type { IpvsServers } from './kernel.ts';
import { type Pair, type Removal, removalOf, TerminationList } from './termination-list.ts';

/**
 * From one check of draining real servers to the next. Differs from upstream (drained-sooner), which checks every
 * minute: a new pod may get the address of one that drains, and should not have weight 0 for so long.
 */
export const pollIntervalMs = 10_000;

export interface GracefulOptions {
  readonly servers: IpvsServers;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Runs work while nothing else writes, on what the kernel is believed to hold, if that is known. */
  readonly exclusively: (work: (current: CurrentState | undefined) => Promise<void>) => Promise<void>;
}

/** The result of removing a real server. */
export interface RemovalOutcome extends Pair {
  readonly result: 'gone' | 'draining' | Error;
}

/** Listed real servers of virtual servers, by their keys; a virtual server that could not be read is missing. */
type Listing = ReadonlyMap<string, ReadonlyMap<string, ListedRealServer>>;

/**
 * Removes real servers without cutting TCP connections: weight 0 keeps new ones away, and every ten seconds those whose
 * last connection has ended are deleted. There is no limit to how long that may take.
 */
export class GracefulTermination {
  readonly #options: GracefulOptions;
  readonly #list = new TerminationList();
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: GracefulOptions) {
    this.#options = options;
  }

  isDraining(serverKey: string, realKey: string): boolean {
    return this.#list.has(serverKey, realKey);
  }

  /** Stops draining a real server that is wanted again. */
  keep(serverKey: string, realKey: string): void {
    this.#list.drop(serverKey, realKey);
  }

  /** Begins to remove real servers. What can be neither deleted nor drained is not on the list, but an error. */
  async remove(pairs: readonly Pair[]): Promise<RemovalOutcome[]> {
    // Other protocols do not wait for connections, so that there is nothing to ask the kernel.
    const listing = await this.#read(pairs.filter(({ server }) => server.protocol === 'TCP'));
    const deletions: Pair[] = [];
    const drains: Pair[] = [];
    const outcomes: RemovalOutcome[] = [];
    for (const pair of pairs) {
      const removal = pair.server.protocol === 'TCP' ? decide(pair, listing) : 'delete';
      if (removal === 'gone') outcomes.push({ ...pair, result: 'gone' });
      else if (removal === 'delete') deletions.push(pair);
      else drains.push(pair);
    }
    const refused = await this.#delete(deletions);
    for (const pair of deletions) {
      if (refused.has(pair)) drains.push(pair);
      else outcomes.push({ ...pair, result: 'gone' });
    }
    outcomes.push(...(await this.#drain(drains)));
    this.#arm();
    return outcomes;
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  async #read(pairs: readonly Pair[]): Promise<Listing> {
    const servers = new Map<string, VirtualServer>();
    for (const { server } of pairs) servers.set(formatVirtualServer(server), server);
    const listing = new Map<string, Map<string, ListedRealServer>>();
    for (const [key, server] of servers) {
      try {
        const listed = await this.#options.servers.listRealServers(server);
        listing.set(key, new Map(listed.map((real) => [formatRealServer(real), real])));
      } catch (error) {
        this.#options.logger.error(error, 'Failed to list real servers', { virtualServer: key });
      }
    }
    return listing;
  }

  /** Those that could not be deleted. */
  async #delete(pairs: readonly Pair[]): Promise<ReadonlySet<Pair>> {
    const operations = pairs.map(({ server, real }): IpvsOperation => ({ verb: 'delete', server, real }));
    const refused = new Set<Pair>();
    for (const [pair, error] of await this.#apply(pairs, operations)) {
      if (isAbsent(error)) continue;
      refused.add(pair);
      this.#options.logger.error(error, 'Failed to delete real server', {
        virtualServer: formatVirtualServer(pair.server),
        realServer: formatRealServer(pair.real),
      });
    }
    return refused;
  }

  async #drain(pairs: readonly Pair[]): Promise<RemovalOutcome[]> {
    const operations = pairs.map(
      ({ server, real }): IpvsOperation => ({ verb: 'edit', server, real: { ...real, weight: 0 } }),
    );
    const failures = await this.#apply(pairs, operations);
    return pairs.map((pair) => {
      const error = failures.get(pair);
      if (error) return { ...pair, result: isAbsent(error) ? 'gone' : error };
      this.#list.add(pair);
      return { ...pair, result: 'draining' };
    });
  }

  async #apply(pairs: readonly Pair[], operations: readonly IpvsOperation[]): Promise<Map<Pair, Error>> {
    const failures = new Map<Pair, Error>();
    if (operations.length === 0) return failures;
    const refused = new Map(
      (await this.#options.servers.apply(operations)).map(({ operation, error }) => [operation, error]),
    );
    for (const [i, pair] of pairs.entries()) {
      const operation = operations[i];
      const error = operation && refused.get(operation);
      if (error) failures.set(pair, error);
    }
    return failures;
  }

  /** One timer while anything drains, none otherwise. */
  #arm(): void {
    if (this.#timer || this.#isClosed || this.#list.isEmpty) return;
    this.#timer = this.#options.clock.setTimeout(() => void this.#poll(), pollIntervalMs);
  }

  async #poll(): Promise<void> {
    try {
      await this.#options.exclusively((current) => this.#look(current));
    } catch (error) {
      this.#options.logger.error(error, 'Failed to check draining real servers');
    } finally {
      this.#timer = undefined;
      this.#arm();
    }
  }

  /** Deletes drained real servers. Those that cannot be read or deleted stay for the next check. */
  async #look(current: CurrentState | undefined): Promise<void> {
    if (this.#isClosed) return;
    const pairs = this.#list.pairs();
    const listing = await this.#read(pairs);
    const done = new Map(pairs.map((pair) => [pair, decide(pair, listing)]));
    const refused = await this.#delete(pairs.filter((pair) => done.get(pair) === 'delete'));
    for (const [pair, removal] of done) {
      if (removal === 'drain' || refused.has(pair)) continue;
      const serverKey = formatVirtualServer(pair.server);
      const realKey = formatRealServer(pair.real);
      this.#list.drop(serverKey, realKey);
      current?.servers.get(serverKey)?.reals.delete(realKey);
    }
  }
}

/** A real server with unknown state drains. */
function decide({ server, real }: Pair, listing: Listing): Removal {
  const listed = listing.get(formatVirtualServer(server));
  return listed ? removalOf(server.protocol, listed.get(formatRealServer(real))) : 'drain';
}
