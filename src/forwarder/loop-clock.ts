import type { Clock, Timer } from '../lib/clock.ts';

interface Entry {
  readonly at: number;
  run: (() => void) | undefined;
}

/** Timers for a thread that turns its own loop. A cancelled timer stays in the heap until it is due. */
export class LoopClock implements Clock {
  readonly #base: Pick<Clock, 'now' | 'monotonic'>;
  /** A binary heap; the next timer is first. */
  readonly #heap: Entry[] = [];

  constructor(base: Pick<Clock, 'now' | 'monotonic'>) {
    this.#base = base;
  }

  now(): number {
    return this.#base.now();
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  setTimeout(run: () => void, ms: number): Timer {
    const entry: Entry = { at: this.monotonic() + ms, run };
    this.#push(entry);
    return {
      cancel() {
        entry.run = undefined;
      },
    };
  }

  get isDue(): boolean {
    const next = this.#heap[0];
    return next !== undefined && next.at <= this.monotonic();
  }

  /** Runs due timers; returns the milliseconds until the next one, at most `max`. */
  advance(max: number): number {
    for (;;) {
      const next = this.#heap[0];
      if (!next) return max;
      const left = next.at - this.monotonic();
      if (left > 0 && next.run) return Math.min(max, Math.ceil(left));
      this.#pop();
      next.run?.();
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((heap[parent]?.at ?? 0) <= entry.at) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    this.#swap(0, heap.length - 1);
    heap.pop();
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if ((heap[child]?.at ?? Number.POSITIVE_INFINITY) < (heap[least]?.at ?? 0)) least = child;
      }
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #swap(a: number, b: number): void {
    const [x, y] = [this.#heap[a], this.#heap[b]];
    if (!x || !y) return;
    this.#heap[a] = y;
    this.#heap[b] = x;
  }
}
