import type { Inspection } from '../backends/inspection.ts';
import type { Clock, Timer } from '../lib/clock.ts';

export interface KernelViewOptions {
  readonly open: () => Promise<Inspection>;
  readonly clock: Clock;
}

const idleMs = 60_000;
const maxWaiting = 16;

/**
 * What the kernel holds of one family. Opened at the first question, closed when none has come for a while or when one
 * failed; answers one question at a time.
 */
export class KernelView {
  readonly #options: KernelViewOptions;
  #inspection: Inspection | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #idle: Timer | undefined;

  constructor(options: KernelViewOptions) {
    this.#options = options;
  }

  ask<T>(question: (inspection: Inspection) => Promise<T>): Promise<T> {
    if (this.#waiting >= maxWaiting) {
      return Promise.reject(new Error(`${maxWaiting} questions about the kernel wait already`));
    }
    this.#waiting++;
    const answer = this.#last.then(() => this.#answer(question));
    this.#last = answer.then(
      () => {
        this.#waiting--;
      },
      () => {
        this.#waiting--;
        return this.#close();
      },
    );
    return answer;
  }

  async #answer<T>(question: (inspection: Inspection) => Promise<T>): Promise<T> {
    this.#idle?.cancel();
    this.#inspection ??= await this.#options.open();
    try {
      return await question(this.#inspection);
    } finally {
      this.#idle = this.#options.clock.setTimeout(() => this.#closeIdle(), idleMs);
    }
  }

  async #close(): Promise<void> {
    this.#idle?.cancel();
    const inspection = this.#inspection;
    this.#inspection = undefined;
    // One that cannot be closed is no use to anybody, and nobody's question: the next one opens another.
    await inspection?.close().catch(() => {});
  }

  /** A question that came just now keeps it open. */
  #closeIdle(): void {
    if (this.#waiting === 0) this.#last = this.#close();
  }
}
