import type { Inspection, KernelAnswer, Packet } from '../backends/inspection.ts';
import type { Clock, Timer } from '../lib/clock.ts';

export interface KernelViewOptions {
  readonly open: () => Promise<Inspection>;
  readonly clock: Clock;
}

const idleMs = 60_000;
const maxWaiting = 16;

/** A packet that somebody wants to know about. */
interface AskedPacket {
  readonly packet: Packet;
  readonly answer: PromiseWithResolvers<KernelAnswer>;
}

/**
 * What the kernel holds of one family. Opened at the first question, closed when none has come for a while or when one
 * failed; answers one question at a time.
 */
export class KernelView {
  readonly #options: KernelViewOptions;
  #inspection: Inspection | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** Packets whose turn has not come. */
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

  /** What the kernel does with a packet. Those that wait at the same time share a turn, and so what is read for it. */
  fateOf(packet: Packet): Promise<KernelAnswer> {
    this.#packets ??= this.#takeTurn();
    if (this.#packets.length >= maxWaiting) return tooMany();
    const answer = Promise.withResolvers<KernelAnswer>();
    this.#packets.push({ packet, answer });
    return answer.promise;
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
      // One that failed may have left something half read.
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
    // One that cannot be closed is no use to anybody, and nobody's question: the next one opens another.
    await inspection?.close().catch(() => {});
  }

  /** A question that came just now keeps it open. */
  #closeIdle(): void {
    if (this.#waiting === 0) this.#last = this.#close();
  }
}

function tooMany(): Promise<never> {
  return Promise.reject(new Error(`${maxWaiting} questions about the kernel wait already`));
}
