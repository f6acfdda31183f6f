/** How many events are kept; a failed connection needs those of the last seconds. */
const KEPT = 5_000;

/** What happened when, for the explanation of a failure. */
export class Timeline {
  readonly #events: { readonly at: number; readonly text: string }[] = [];
  readonly #begun = performance.now();
  readonly #print: (line: string) => void;

  constructor(print: (line: string) => void = () => {}) {
    this.#print = print;
  }

  note(text: string): void {
    const event = { at: performance.now(), text };
    this.#events.push(event);
    if (this.#events.length > KEPT) this.#events.shift();
    this.#print(this.#line(event));
  }

  /** The events around a time, with a few seconds before it. */
  excerpt(begin: number, end: number): string {
    const lines = this.#events.filter(({ at }) => at >= begin - 3_000 && at <= end + 500);
    return lines.map((event) => `    ${this.#line(event)}`).join('\n');
  }

  /** Seconds since the begin of the run. */
  seconds(at: number): string {
    return ((at - this.#begun) / 1000).toFixed(3);
  }

  #line({ at, text }: { readonly at: number; readonly text: string }): string {
    return `${this.seconds(at).padStart(9)} s  ${text}`;
  }
}
