/**
 * Word that a server answers, for those who wait to try it again: after an outage the first to get through ends the
 * waits of the others, which have grown long by then.
 */
export class ServerPresence {
  #next = new AbortController();

  /** Aborts the next time the server answers somebody. */
  get next(): AbortSignal {
    return this.#next.signal;
  }

  answered(): void {
    const told = this.#next;
    this.#next = new AbortController();
    told.abort();
  }
}
