import type { Clock, Timer } from '../src/lib/clock.ts';

/** A clock that moves only through `advance`, which runs due timers in the order of their time. */
export class FakeClock implements Clock {
  #now: number;
  /** How far the wall clock was set. */
  #wallStep = 0;
  #timers: { at: number; run: () => void }[] = [];

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now + this.#wallStep;
  }

  monotonic(): number {
    return this.#now;
  }

  setTimeout(run: () => void, ms: number): Timer {
    const timer = { at: this.#now + Math.max(0, ms), run };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((t) => t !== timer);
      },
    };
  }

  /** Sets the wall clock forward, or back if negative. Timers and the monotonic clock do not notice. */
  setWall(byMs: number): void {
    this.#wallStep += byMs;
  }

  /** Moves time forward, running due timers and letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = this.#timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((t) => t !== next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = end;
    await settle();
  }

  /** How many timers wait; for leak checks. */
  get pending(): number {
    return this.#timers.length;
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}
