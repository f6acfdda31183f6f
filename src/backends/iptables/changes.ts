import type { WriterObserver } from '../../kernel/iptables/commands.ts';
import type { Flavour } from '../../kernel/iptables/table-reader.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { IptablesNode } from './node.ts';
import type { RuleWatcher } from './rule-watch.ts';
import { SizeWatch } from './size-watch.ts';

/** Tells what others do to the tables of one family, in the way that the flavour of iptables allows. */
export interface Changes extends WriterObserver {
  /** Begins to tell; the function returned ends it. */
  watch(watcher: RuleWatcher): () => void;
}

export function changesOf(flavour: Flavour, node: IptablesNode, options: ChangesOptions): Changes {
  return flavour === 'nft' ? new NotifiedChanges(node, options.family) : new PolledChanges(node, options);
}

export interface ChangesOptions {
  readonly family: Family;
  readonly clock: Clock;
  readonly logger: Logger;
}

class NotifiedChanges implements Changes {
  readonly #node: IptablesNode;
  readonly #family: Family;

  constructor(node: IptablesNode, family: Family) {
    this.#node = node;
    this.#family = family;
  }

  watch(watcher: RuleWatcher): () => void {
    this.#node.ruleWatch.watch(this.#family, watcher);
    return () => this.#node.ruleWatch.unwatch(this.#family);
  }

  writerStarted(pid: number): void {
    this.#node.ruleWatch.ownWriter(pid);
  }

  writerEnded(): void {}
}

class PolledChanges implements Changes {
  readonly #node: IptablesNode;
  readonly #options: ChangesOptions;
  #sizes: SizeWatch | undefined;

  constructor(node: IptablesNode, options: ChangesOptions) {
    this.#node = node;
    this.#options = options;
  }

  watch(watcher: RuleWatcher): () => void {
    const { family, clock, logger } = this.#options;
    try {
      const sizes = this.#node.kernel.openSizes(family);
      const onSuspicion = () => watcher.onSuspicion('unknown');
      this.#sizes = new SizeWatch({ family, sizes, clock, logger, onSuspicion });
    } catch (error) {
      logger.error(error, 'Cannot watch the tables; a flush is noticed by the canary chain only', {
        ipFamily: family,
      });
    }
    return () => {
      this.#sizes?.close();
      this.#sizes = undefined;
    };
  }

  writerStarted(): void {
    this.#sizes?.writerStarted();
  }

  writerEnded(): void {
    this.#sizes?.writerEnded();
  }
}
