import { openXtablesKernel, type XtablesKernel } from '../../kernel/xtables/open.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../obs/log.ts';
import { type CounterMetrics, PacketCounters } from './counters.ts';
import { RuleWatch } from './rule-watch.ts';

/** What both families of a node have in common: sockets, packet counters, the subscription to changes. */
export class IptablesNode {
  readonly kernel: XtablesKernel;
  /** Undefined when the kernel has none. */
  readonly counters: PacketCounters | undefined;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #ruleWatch: RuleWatch | undefined;

  private constructor(
    kernel: XtablesKernel,
    counters: PacketCounters | undefined,
    clock: Clock,
    logger: Logger,
  ) {
    this.kernel = kernel;
    this.counters = counters;
    this.#clock = clock;
    this.#logger = logger;
  }

  static async open(metrics: CounterMetrics, clock: Clock, logger: Logger): Promise<IptablesNode> {
    const kernel = await openXtablesKernel(clock);
    const counters = await PacketCounters.open(kernel.acct, logger);
    counters?.publish(metrics);
    return new IptablesNode(kernel, counters, clock, logger);
  }

  /** For iptables on nf_tables: opened when first used. */
  get ruleWatch(): RuleWatch {
    this.#ruleWatch ??= new RuleWatch({
      subscribe: (listener) => this.kernel.subscribeRules(listener),
      clock: this.#clock,
      logger: this.#logger,
    });
    return this.#ruleWatch;
  }

  close(): void {
    this.#ruleWatch?.close();
    this.kernel.close();
  }
}
