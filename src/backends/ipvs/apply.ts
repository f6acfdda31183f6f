import type { SetDefinition } from '../../kernel/ipset/objects.ts';
import {
  formatRealServer,
  formatVirtualServer,
  type IpvsOperation,
  type RealServer,
  type VirtualServer,
} from '../../kernel/ipvs/objects.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Logger } from '../../obs/log.ts';
import type { CurrentState } from './current.ts';
import type { DesiredState } from './desired.ts';
import type { ServerChange, SetChange } from './diff.ts';
import { isAbsent, lacksScheduler } from './errors.ts';
import type { GracefulTermination } from './graceful.ts';
import type { IpvsKernel } from './kernel.ts';
import { boundAddressSet, type IpsetName, setDefinition } from './sets.ts';
import { hashScheduler, isHashed, withoutHash } from './virtual-server.ts';

export interface ApplyOptions {
  readonly kernel: IpvsKernel;
  readonly desired: DesiredState;
  /** Updated with every change that the kernel accepts. */
  readonly current: CurrentState;
  readonly graceful: GracefulTermination;
  readonly logger: Logger;
}

/** One operation and its consequences. */
interface Step {
  readonly operation: IpvsOperation;
  readonly done: () => void;
  readonly failed: (error: Error) => void;
}

/** Writes changes to the kernel, many at a time. A failure stops nothing but what depends on it. */
export class Application {
  readonly #options: ApplyOptions;
  /** The first error of each service port that is not (fully) programmed. */
  readonly failures = new Map<string, Error>();
  /** Problems that concern all service ports. */
  readonly problems: Error[] = [];
  /** How many stale objects could not be removed. */
  leftovers = 0;
  /** What the kernel answered when it lacks the scheduler that hashes. */
  #missingHash: Error | undefined;

  constructor(options: ApplyOptions) {
    this.#options = options;
  }

  get isComplete(): boolean {
    return this.failures.size === 0 && this.problems.length === 0 && this.leftovers === 0;
  }

  /** Virtual servers, their real servers, and last the addresses that bring packets to them. */
  async changeServers(changes: readonly ServerChange[]): Promise<void> {
    const made = await this.#ensureServers(changes);
    await this.#fill(made);
    await this.#bind(made);
    await this.#drain(made);
  }

  /** Differs from upstream (add-before-delete): a set never lacks what is wanted before and after. */
  async addEntries({ set, add }: SetChange): Promise<void> {
    if (add.length === 0) return;
    const { kernel, desired } = this.#options;
    await this.#changeSet(set, async (definition, known) => {
      const failures = await kernel.sets.add(definition, add);
      for (const entry of without(add, failures, 'entry')) known.add(entry);
      for (const { entry, error } of failures) {
        for (const owner of desired.entryOwners(set, entry)) this.#fail(owner, error);
      }
    });
  }

  async removeEntries({ set, add, remove }: SetChange): Promise<void> {
    const { kernel, current } = this.#options;
    // The set mirrors the device: what could not be bound is not in it.
    const unbound = set === boundAddressSet ? add.filter((address) => !current.addresses.has(address)) : [];
    const entries = [...remove, ...unbound];
    if (entries.length === 0) return;
    await this.#changeSet(set, async (definition, known) => {
      const failures = await kernel.sets.delete(definition, entries);
      for (const entry of without(entries, failures, 'entry')) known.delete(entry);
      for (const { entry, error } of failures) {
        this.#leave('Failed to delete entry', error, { ipset: definition.name, entry });
      }
    });
  }

  async #changeSet(
    set: IpsetName,
    change: (definition: SetDefinition, known: Set<string>) => Promise<void>,
  ): Promise<void> {
    const { desired, current } = this.#options;
    const definition = setDefinition(set, desired.settings.family);
    try {
      await change(definition, current.sets.get(set) ?? new Set());
    } catch (cause) {
      this.problems.push(
        new Error(`failed to change ipset ${definition.name}: ${messageOf(cause)}`, { cause }),
      );
    }
  }

  async unbind(addresses: readonly string[]): Promise<void> {
    if (addresses.length === 0) return;
    const { kernel, current } = this.#options;
    const stuck = await kernel.device.unbind(addresses);
    for (const { address, error } of stuck) this.#leave('Failed to unbind address', error, { address });
    for (const address of without(addresses, stuck, 'address')) current.addresses.delete(address);
  }

  /** Draining real servers go with their virtual server; the next check finds them gone. */
  async deleteServers(servers: readonly VirtualServer[]): Promise<void> {
    const { current } = this.#options;
    const steps = servers.map((server): Step => {
      const virtualServer = formatVirtualServer(server);
      const done = () => void current.servers.delete(virtualServer);
      return {
        operation: { verb: 'delete', server },
        done,
        failed: (error) =>
          isAbsent(error) ? done() : this.#leave('Failed to delete virtual server', error, { virtualServer }),
      };
    });
    await this.#run(steps);
  }

  /**
   * Resolves to the changes whose virtual server is now right. Differs from upstream (kept-on-failure): one that
   * cannot be updated stays as it was, where upstream would delete it.
   */
  async #ensureServers(changes: readonly ServerChange[]): Promise<readonly ServerChange[]> {
    const { hashed = [], plain = [] } = Object.groupBy(changes, ({ server }) =>
      isHashed(server) ? 'hashed' : 'plain',
    );
    const refused = new Map([...(await this.#writeServers(plain)), ...(await this.#writeHashed(hashed))]);
    const unhashed = await this.#serveWithoutHash(refused);
    for (const [{ owner }, error] of refused) this.#fail(owner, error);
    return [...changes.filter((change) => !refused.has(change)), ...unhashed];
  }

  /**
   * Writes one virtual server before the others: where the kernel lacks the scheduler, each request starts a program
   * that looks for its module, and the event loop waits for that.
   */
  async #writeHashed(changes: readonly ServerChange[]): Promise<Map<ServerChange, Error>> {
    const [first, ...others] = changes.filter(({ action }) => action !== 'keep');
    if (!first) return new Map();
    const refused = this.#missingHash ? new Map<ServerChange, Error>() : await this.#writeServers([first]);
    const error = this.#missingHash ?? refused.get(first);
    if (!error || !lacksScheduler(error)) return new Map([...refused, ...(await this.#writeServers(others))]);
    this.#missingHash = error;
    return new Map([first, ...others].map((change) => [change, error]));
  }

  /**
   * Writes refused virtual servers with the usual scheduler where the kernel lacks the one that hashes. They stay among
   * the refused ones, with that as the reason, and so are tried again. Resolves to their changes.
   */
  async #serveWithoutHash(refused: Map<ServerChange, Error>): Promise<readonly ServerChange[]> {
    const { scheduler } = this.#options.desired.settings;
    const plain = new Map<ServerChange, ServerChange>();
    for (const [change, error] of refused) {
      if (!isHashed(change.server) || !lacksScheduler(error)) continue;
      plain.set({ ...change, server: withoutHash(change.server, scheduler) }, change);
    }
    const failures = await this.#writeServers([...plain.keys()]);
    for (const [change, original] of plain) {
      if (failures.has(change)) continue;
      const reason = `this kernel has no scheduler ${hashScheduler} (module ip_vs_${hashScheduler}), which hashes clients`;
      refused.set(original, new Error(`${reason}; ${scheduler} chooses endpoints instead`));
    }
    return [...plain.keys()].filter((change) => !failures.has(change));
  }

  /** Resolves to what the kernel refused, with its errors. */
  async #writeServers(changes: readonly ServerChange[]): Promise<Map<ServerChange, Error>> {
    const { current } = this.#options;
    const refused = new Map<ServerChange, Error>();
    const steps = changes.flatMap((change): Step[] => {
      const { key, server, action } = change;
      if (action === 'keep') return [];
      return [
        {
          operation: { verb: action, server },
          done: () => {
            const known = current.servers.get(key);
            current.servers.set(key, known ? { ...known, server } : { server, reals: new Map() });
          },
          failed: (error) => void refused.set(change, error),
        },
      ];
    });
    await this.#run(steps);
    return refused;
  }

  async #bind(changes: readonly ServerChange[]): Promise<void> {
    const { kernel, current } = this.#options;
    const addresses = [...new Set(changes.flatMap(({ bind, server }) => (bind ? [server.address] : [])))];
    if (addresses.length === 0) return;
    const failures = await kernel.device.bind(addresses);
    for (const address of without(addresses, failures, 'address')) current.addresses.add(address);
    const errors = new Map(failures.map(({ address, error }) => [address, error]));
    for (const { owner, bind, server } of changes) {
      const error = bind ? errors.get(server.address) : undefined;
      if (error) this.#fail(owner, error);
    }
  }

  /**
   * Adds real servers, and gives back their weight to those that are wanted again. Differs from upstream
   * (weight-given-back), which deletes and adds those, and thereby cuts their connections.
   */
  async #fill(changes: readonly ServerChange[]): Promise<void> {
    const { graceful } = this.#options;
    const steps: Step[] = [];
    for (const { owner, key, server, add, restore, unreadable } of changes) {
      if (unreadable) this.#fail(owner, unreadable);
      const step = (verb: 'add' | 'edit', real: RealServer): Step => ({
        operation: { verb, server, real },
        done: () => {
          graceful.keep(key, formatRealServer(real));
          this.#reals(key)?.set(formatRealServer(real), real);
        },
        failed: (error) => this.#fail(owner, error),
      });
      for (const real of add) steps.push(step('add', real));
      for (const real of restore) steps.push(step('edit', real));
    }
    await this.#run(steps);
  }

  async #drain(changes: readonly ServerChange[]): Promise<void> {
    const owners = new Map(changes.map(({ key, owner }) => [key, owner]));
    const pairs = changes.flatMap(({ server, remove }) => remove.map((real) => ({ server, real })));
    if (pairs.length === 0) return;
    for (const { server, real, result } of await this.#options.graceful.remove(pairs)) {
      const key = formatVirtualServer(server);
      if (result instanceof Error) this.#fail(owners.get(key) ?? '', result);
      else if (result === 'gone') this.#reals(key)?.delete(formatRealServer(real));
      else this.#reals(key)?.set(formatRealServer(real), { ...real, weight: 0 });
    }
  }

  #reals(key: string): Map<string, RealServer> | undefined {
    return this.#options.current.servers.get(key)?.reals;
  }

  async #run(steps: readonly Step[]): Promise<void> {
    if (steps.length === 0) return;
    const failures = await this.#options.kernel.servers.apply(steps.map(({ operation }) => operation));
    const errors = new Map(failures.map(({ operation, error }) => [operation, error]));
    for (const { operation, done, failed } of steps) {
      const error = errors.get(operation);
      if (error) failed(error);
      else done();
    }
  }

  #fail(owner: string, error: Error): void {
    if (!this.failures.has(owner)) this.failures.set(owner, error);
  }

  /** Logs a stale object that could not be removed. No traffic depends on it; the next full sync retries. */
  #leave(message: string, error: Error, attributes: Readonly<Record<string, unknown>>): void {
    this.leftovers++;
    this.#options.logger.error(error, message, attributes);
  }
}

/** The items that are not among the failures. */
function without<K extends string>(
  items: readonly string[],
  failures: readonly Readonly<Record<K, string>>[],
  key: K,
): readonly string[] {
  if (failures.length === 0) return items;
  const failed = new Set<string>(failures.map((failure) => failure[key]));
  return items.filter((item) => !failed.has(item));
}
