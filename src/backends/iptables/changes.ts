import type { WriterObserver } from '../../kernel/iptables/commands.ts';
import type { Flavour } from '../../kernel/iptables/table-reader.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import type { IptablesNode } from './node.ts';
import type { RuleWatcher } from './rule-watch.ts';
import { SizeWatch } from './size-watch.ts';
import type { Growth } from './written-rules.ts';

/** Reports what other programs do to the tables of one family, in the way that the flavour of iptables allows. */
export interface Changes extends WriterObserver {
  /** Begins to report; returns what ends that. */
  watch(watcher: RuleWatcher): () => void;
  /** What our programs wrote made the tables grow so. */
  explained(growth: Growth): void;
}

export interface ChangesOptions {
  readonly family: Family;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function changesOf(flavour: Flavour, node: IptablesNode, options: ChangesOptions): Changes {
  return flavour === 'nft' ? notifiedChanges(node, options) : polledChanges(node, options);
}

function notifiedChanges(node: IptablesNode, { family }: ChangesOptions): Changes {
  return {
    watch: (watcher) => {
      node.ruleWatch.watch(family, watcher);
      return () => node.ruleWatch.unwatch(family);
    },
    writerStarted: (pid) => node.ruleWatch.writerStarted(pid),
    writerEnded: (pid) => node.ruleWatch.writerEnded(pid),
    // Notifications name the program that made a change.
    explained: () => {},
  };
}

function polledChanges(node: IptablesNode, { family, clock, logger }: ChangesOptions): Changes {
  let watch: SizeWatch | undefined;
  return {
    watch: (watcher) => {
      try {
        const onSuspicion = () => watcher.onSuspicion('unknown');
        watch = new SizeWatch({ family, sizes: node.kernel.openSizes(family), clock, logger, onSuspicion });
      } catch (error) {
        const text = 'Cannot watch the tables; a flush is noticed by the canary chain only';
        logger.error(error, text, { ipFamily: family });
      }
      return () => {
        watch?.close();
        watch = undefined;
      };
    },
    writerStarted: () => watch?.writerStarted(),
    writerEnded: () => watch?.writerEnded(),
    explained: (growth) => watch?.explained(growth),
  };
}
