import { ignorePorts } from '../../kernel/netlink/filter.ts';
import type { RuleEvent, RuleEventListener, RuleSubscription } from '../../kernel/nft/rule-events.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { LastingSubscription } from '../lasting-subscription.ts';
import type { ForeignChange } from '../repairs.ts';
import { jumps, sharedChain } from './jumps.ts';

/** Is told what others do to the tables of one family. */
export interface RuleWatcher {
  /** Whether a chain is ours alone. */
  owns(table: string, chain: string): boolean;
  /** One of our chains was changed. */
  onDamage(change: ForeignChange): void;
  /** Something happened that may concern us: to a chain that is not ours alone, or unseen. */
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
/** Programs whose notifications the kernel keeps from us; each writes for a moment only. */
const filteredWriters = 16;
/** How long what a program wrote may still be on its way to us. */
const memoryMs = 60_000;

/**
 * Follows changes of rules where iptables stands on nf_tables, and tells what others did from what the programs we
 * started did: a program's netlink port is its process id.
 */
export class RuleWatch {
  readonly #options: RuleWatchOptions;
  readonly #watchers = new Map<Family, RuleWatcher>();
  readonly #writers = new Map<number, number>();
  readonly #subscription: LastingSubscription<RuleSubscription>;
  #noted = new Map<Family, Map<string, number>>();
  #suspect = new Set<Family>();

  constructor(options: RuleWatchOptions) {
    this.#options = options;
    const { subscribe, clock, logger } = options;
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
  ownWriter(pid: number): void {
    const now = this.#options.clock.monotonic();
    for (const [old, since] of this.#writers) {
      if (since > now - memoryMs) break;
      this.#writers.delete(old);
    }
    this.#writers.delete(pid);
    this.#writers.set(pid, now);
    // What it writes can be much; the kernel need not even queue it. Should it be too late for that, nothing is lost.
    this.#subscription.current?.attachFilter(ignorePorts([...this.#writers.keys()].slice(-filteredWriters)));
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

  #settle(port: number, by: string): void {
    if (this.#writers.has(port)) return;
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
 * Additions elsewhere never take anything from us. Deletions may: of a table, from a chain of the kernel that holds a
 * jump to us, or from what we share with the kubelet.
 */
function mayConcernUs({ type, chain }: RuleEvent): boolean {
  return type === 'deleted' && (chain === '' || sharedChains.has(chain));
}
