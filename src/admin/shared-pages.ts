import type { Clock } from '../lib/clock.ts';
import { CoalescedRead } from '../lib/coalesced-read.ts';

/** Pages of this many forms are kept. Scrapers of one node ask for one or two. */
const mostForms = 4;

/**
 * Pages that requests share. A page serves every request that was already waiting when the making of the page began, so no
 * client gets figures from before its request. A flood costs one page for all that wait, not one for each request.
 */
export class SharedPages<Form> {
  readonly #make: (form: Form) => Promise<Uint8Array>;
  readonly #clock: Clock;
  readonly #pages = new Map<string, SharedPage>();

  constructor(make: (form: Form) => Promise<Uint8Array>, clock: Clock) {
    this.#make = make;
    this.#clock = clock;
  }

  /** Returns a page that began to be made after this time of the monotonic clock. Rejects if making it fails. */
  get(form: Form, since: number): Uint8Array | Promise<Uint8Array> {
    const key = JSON.stringify(form);
    let page = this.#pages.get(key);
    if (!page) {
      page = new SharedPage(() => this.#make(form), this.#clock);
      const [oldest] = this.#pages.keys();
      if (oldest !== undefined && this.#pages.size >= mostForms) this.#pages.delete(oldest);
      this.#pages.set(key, page);
    }
    return page.get(since);
  }
}

interface Made {
  readonly begun: number;
  /** A promise until it is complete. */
  page: Uint8Array | Promise<Uint8Array>;
}

class SharedPage {
  readonly #make: () => Promise<Uint8Array>;
  readonly #clock: Clock;
  /** Makes one page at a time. */
  readonly #next = new CoalescedRead(() => this.#begin());
  #latest: Made | undefined;

  constructor(make: () => Promise<Uint8Array>, clock: Clock) {
    this.#make = make;
    this.#clock = clock;
  }

  get(since: number): Uint8Array | Promise<Uint8Array> {
    return this.#latest && this.#latest.begun > since ? this.#latest.page : this.#next.get();
  }

  async #begin(): Promise<Uint8Array> {
    const made: Made = { begun: this.#clock.monotonic(), page: this.#make() };
    this.#latest = made;
    try {
      made.page = await made.page;
    } catch (error) {
      this.#latest = undefined;
      throw error;
    }
    return made.page;
  }
}
