import type { Inspection, KernelAnswer, Packet } from '../backends/inspection.ts';
import type { Clock, Timer } from '../lib/clock.ts';

export interface KernelViewOptions {
  readonly open: () => Promise<Inspection>;
  readonly clock: Clock;
}

const idleMs = 60_000;
const maxWaiting = 16;

/** A packet whose fate was asked for. */
interface AskedPacket {
  readonly packet: Packet;
  readonly answer: PromiseWithResolvers<KernelAnswer>;
}

/**
 * Asks the kernel about one family, one question at a time. Opens the inspection with the first question; closes it
 * after a minute without questions and after a failure.
 */
export class KernelView {
  readonly #options: KernelViewOptions;
  #inspection: Inspection | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** Packets that wait for their turn. */
  #packets: AskedPacket[] | undefined;
  #idle: Timer | undefined;

  constructor(options: KernelViewOptions) {
    this.#options = options;
  }

  ask<T>(question: (inspection: Inspection) => Promise<T>): Promise<T> {
    if (this.#waiting >= maxWaiting) return tooMany();
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

  /** The fate of a packet in the kernel. Packets that wait at the same time share a turn and what is read for it. */
  fateOf(packet: Packet): Promise<KernelAnswer> {
    this.#packets ??= this.#takeTurn();
    if (this.#packets.length >= maxWaiting) return tooMany();
    const answer = Promise.withResolvers<KernelAnswer>();
    this.#packets.push({ packet, answer });
    return answer.promise;
  }

  /** Closes the inspection after the last question. A later question opens another one. */
  close(): Promise<void> {
    const closed = this.#last.then(() => this.#close());
    this.#last = closed;
    return closed;
  }

  #takeTurn(): AskedPacket[] {
    const packets: AskedPacket[] = [];
    const turn = this.ask(async (inspection) => {
      this.#packets = undefined;
      const answers = packets.map(async ({ packet, answer }) => {
        const asked = inspection.ask(packet);
        asked.then(answer.resolve, answer.reject);
        await asked;
      });
      await Promise.allSettled(answers);
      // Rejects after a failure, which may have left an answer half read.
      await Promise.all(answers);
    });
    turn.catch((error: unknown) => {
      if (this.#packets === packets) this.#packets = undefined;
      for (const { answer } of packets) answer.reject(error);
    });
    return packets;
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
    // A failure to close harms no question: the next one opens another inspection.
    await inspection?.close().catch(() => {});
  }

  /** A question that came just now keeps the inspection open. */
  #closeIdle(): void {
    if (this.#waiting === 0) this.#last = this.#close();
  }
}

function tooMany(): Promise<never> {
  return Promise.reject(new Error(`${maxWaiting} questions about the kernel are already waiting`));
}
