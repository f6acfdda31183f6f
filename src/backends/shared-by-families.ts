interface Held<T> {
  readonly opening: Promise<T>;
  users: number;
}

/**
 * What both families of a mode use: opened for the first of them, closed with the last. Every `acquire` that succeeded
 * is followed by one `release`.
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
    // Counted before it is open, so that a release meanwhile does not close it for who waits.
    held.users++;
    try {
      return await held.opening;
    } catch (error) {
      // Another may have tried again already.
      if (this.#held === held) this.#held = undefined;
      throw error;
    }
  }

  async release(close: (shared: T) => void | Promise<void>): Promise<void> {
    const held = this.#held;
    if (!held || --held.users > 0) return;
    // Before anything is awaited: who asks from now on must not be handed what is about to be closed.
    this.#held = undefined;
    await close(await held.opening);
  }
}
