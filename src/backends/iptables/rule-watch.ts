import { ignorePorts } from '../../kernel/netlink/filter.ts';
import type { RuleEvent, RuleEventListener, RuleSubscription } from '../../kernel/nft/rule-events.ts';
import { type Committer, processText } from '../../kernel/process-name.ts';
import { systemFiles } from '../../kernel/system-files.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { sharedChain } from '../kubelet-chains.ts';
import { LastingSubscription } from '../lasting-subscription.ts';
import type { ForeignChange } from '../repairs.ts';
import { jumps } from './jumps.ts';

/** Receives what other programs do to the tables of one family. */
export interface RuleWatcher {
  /** Whether a chain is ours alone. */
  owns(table: string, chain: string): boolean;
  /** One of our chains was changed. */
  onDamage(change: ForeignChange): void;
  /** Another program may have changed our rules: in a chain that is not ours alone, or unobserved. */
  onSuspicion(by: string): void;
}

export interface RuleWatchOptions {
  readonly subscribe: (listener: RuleEventListener) => RuleSubscription;
  readonly clock: Clock;
  readonly logger: Logger;
}

const ourTables: ReadonlySet<string> = new Set(['nat', 'filter', 'mangle']);
const sharedChains: ReadonlySet<string> = new Set(
  jumps.flatMap(({ from, to }) => (to === sharedChain ? [from, to] : [from])),
);

/**
 * Follows rule changes where iptables uses nf_tables. A program's netlink port is its process id, which distinguishes
 * the programs we started from others. It is the number in the program's own pid namespace, so a program in another one
 * may have the same port, but not at the same time.
 */
export class RuleWatch {
  readonly #watchers = new Map<Family, RuleWatcher>();
  /** Programs of ours that run. */
  readonly #running = new Set<number>();
  /** Programs of ours that run, or of which a notification may be queued. */
  readonly #writers = new Set<number>();
  readonly #subscription: LastingSubscription<RuleSubscription>;
  #noted = new Map<Family, Map<string, number>>();
  #suspect = new Set<Family>();

  constructor({ subscribe, clock, logger }: RuleWatchOptions) {
    const onUnknown = () => this.#suspectAll('unknown');
    this.#subscription = new LastingSubscription({
      topic: 'rule changes',
      open: (failed) =>
        subscribe({
          event: (event) => this.#take(event),
          committed: (port, by) => this.#settle(port, by),
          overrun: onUnknown,
          failed,
        }),
      onReopened: onUnknown,
      clock,
      logger,
    });
  }

  watch(family: Family, watcher: RuleWatcher): void {
    this.#watchers.set(family, watcher);
  }

  unwatch(family: Family): void {
    this.#watchers.delete(family);
  }

  close(): void {
    this.#subscription.close();
  }

  /** We started a program that writes rules. */
  writerStarted(pid: number): void {
    this.#running.add(pid);
    this.#writers.add(pid);
    this.#filter();
  }

  /** It has ended. The kernel queues notifications while it writes, so no further ones come. */
  writerEnded(pid: number): void {
    this.#running.delete(pid);
    this.#filter();
    const forget = () => {
      if (!this.#running.has(pid)) this.#writers.delete(pid);
    };
    const { current } = this.#subscription;
    if (current) void current.drained().then(forget);
    else forget();
  }

  /** The kernel need not queue notifications of our programs, which may be many. A filter that is late does no harm. */
  #filter(): void {
    this.#subscription.current?.attachFilter(ignorePorts([...this.#running]));
  }

  #take(event: RuleEvent): void {
    const watcher = this.#watchers.get(event.family);
    if (!watcher || !ourTables.has(event.table) || this.#writers.has(event.port)) return;
    if (watcher.owns(event.table, event.chain)) this.#note(event);
    else if (mayConcernUs(event)) this.#suspect.add(event.family);
  }

  #note({ family, kind, type }: RuleEvent): void {
    const noted = this.#noted.get(family) ?? new Map<string, number>();
    const what = `${kind} ${type}`;
    this.#noted.set(family, noted.set(what, (noted.get(what) ?? 0) + 1));
  }

  #settle(port: number, committer: Committer): void {
    if (this.#writers.has(port) || this.#noted.size + this.#suspect.size === 0) return;
    const by = processText(committer, systemFiles);
    const noted = this.#noted;
    const suspect = this.#suspect;
    this.#noted = new Map();
    this.#suspect = new Set();
    for (const [family, objects] of noted) this.#watchers.get(family)?.onDamage({ objects, by });
    for (const family of suspect) if (!noted.has(family)) this.#watchers.get(family)?.onSuspicion(by);
  }

  #suspectAll(by: string): void {
    for (const watcher of this.#watchers.values()) watcher.onSuspicion(by);
  }
}

/**
 * Whether a change outside our chains may affect us. Additions never do. Deletions may: of a table, in a built-in
 * chain with a jump to us, or in the chain that we share with the kubelet.
 */
function mayConcernUs({ type, chain }: RuleEvent): boolean {
  return type === 'deleted' && (chain === '' || sharedChains.has(chain));
}
