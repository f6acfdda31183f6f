import { CommandError } from '../../kernel/iptables/command-error.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { Closable, Driver, EngineSignals, Wanted, WantedChanges, Written } from '../driver.ts';
import type { ForeignChange } from '../repairs.ts';
import { sameLines } from './chain-diff.ts';
import { compileService, ownChains } from './compile.ts';
import { FullRulesWrite } from './full-write.ts';
import type { NodeLines } from './node-lines.ts';
import { RefusedInput, RuleWriter, type RuleWriterOptions } from './rule-writer.ts';
import type { RulesetWatch } from './ruleset-watch.ts';

export interface IptablesOptions extends RuleWriterOptions {
  /** Begins to watch the rules; absent in tests that do no damage. */
  readonly watch?: (onDamage: (change: ForeignChange) => void) => RulesetWatch;
  readonly onClose?: () => Promise<void>;
}

/**
 * Writes the rules of one family. A partial sync writes only chains that hold something else than what was written last.
 * Chains change all at once or not at all, and nothing jumps to a chain that is not there yet.
 */
export class IptablesDriver implements Driver<NodeLines> {
  readonly subject = 'the iptables ruleset';
  readonly #options: IptablesOptions;
  readonly #writer: RuleWriter;
  #watch: RulesetWatch | undefined;

  constructor(options: IptablesOptions) {
    this.#options = options;
    this.#writer = new RuleWriter(options);
  }

  /** In a large cluster, writing everything just in case costs too much. */
  get skipsHourlySync(): boolean {
    return this.#writer.isLarge;
  }

  async writeChanges(belief: NodeLines, wanted: WantedChanges): Promise<Written<NodeLines>> {
    const writer = this.#writer;
    const node = writer.begin(wanted);
    const changes = writer.ruleset.change(wanted.changed, wanted.plans, writer.variant);
    if (!sameLines(belief.natTail, node.natTail)) changes.nat.add('KUBE-SERVICES');
    const isClearing = writer.mayClear;
    try {
      await writer.restore({ ...changes, stale: isClearing ? writer.staleChains() : [] }, node);
    } catch (error) {
      const { metrics, settings } = this.#options;
      metrics.iptablesPartialRestoreFailures.inc({ ip_family: settings.family });
      throw error;
    }
    if (isClearing) writer.noteCleared();
    return writer.written(node);
  }

  writeAll(wanted: Wanted): FullRulesWrite {
    return new FullRulesWrite(this.#options, this.#writer, wanted, () => this.#watch?.startCanary());
  }

  prepareAlone(plan: ServicePlan): void {
    const { settings } = this.#options;
    ownChains(compileService(plan, settings, this.#writer.variant), settings).rules();
  }

  isRefusal(error: unknown): boolean {
    return error instanceof RefusedInput || isBusy(error);
  }

  watch({ changed }: EngineSignals<NodeLines>): Closable[] {
    this.#watch = this.#options.watch?.(changed);
    return this.#watch ? [this.#watch] : [];
  }

  repairing(): void {
    void this.#watch?.plantCanary();
  }

  async close(): Promise<void> {
    await this.#options.onClose?.();
  }
}

/** Whether other programs held the lock, or used up memory, for longer than the command waited. */
export function isBusy(error: unknown): boolean {
  return error instanceof CommandError && error.isResourceProblem;
}
