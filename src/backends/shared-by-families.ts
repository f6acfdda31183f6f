interface Held<T> {
  readonly opening: Promise<T>;
  users: number;
}

/**
 * A resource that both families of a mode use: opened for the first, closed with the last. Every `acquire` that
 * succeeded needs one `release`.
 */
export class SharedByFamilies<T> {
  #held: Held<T> | undefined;

  get isHeld(): boolean {
    return this.#held !== undefined;
  }

  /** Rejects with the reason when it cannot be opened; the next to ask tries again. */
  async acquire(open: () => Promise<T>): Promise<T> {
    this.#held ??= { opening: open(), users: 0 };
    const held = this.#held;
    // Count the user before awaiting, so a concurrent release cannot close it.
    held.users++;
    try {
      return await held.opening;
    } catch (error) {
      // Another caller may have opened it meanwhile.
      if (this.#held === held) this.#held = undefined;
      throw error;
    }
  }

  async release(close: (shared: T) => void | Promise<void>): Promise<void> {
    const held = this.#held;
    if (!held || --held.users > 0) return;
    // Before anything is awaited, so that no later caller gets what is about to be closed.
    this.#held = undefined;
    await close(await held.opening);
  }
}
