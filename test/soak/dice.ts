import { mulberry32 } from '../mulberry32.ts';

/** Random choices that depend on the seed only. */
export class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = mulberry32(seed);
  }

  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T;
  }

  isLucky(probability: number): boolean {
    return this.#random() < probability;
  }

  /** Picks one item; one of double weight is picked twice as often. */
  weighted<T extends { readonly weight: number }>(from: readonly T[]): T {
    let rest = this.#random() * from.reduce((sum, { weight }) => sum + weight, 0);
    for (const item of from) {
      rest -= item.weight;
      if (rest < 0) return item;
    }
    return from.at(-1) as T;
  }

  /** Some of the items, in their order; perhaps none. */
  some<T>(from: readonly T[], probability = 0.5): T[] {
    return from.filter(() => this.isLucky(probability));
  }
}
