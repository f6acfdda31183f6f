import type { FlowEvent, FlowItem } from '../inspect/traffic-api.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import type { ForwardedEndpoints } from './forwarded-endpoints.ts';

type Event = Omit<FlowEvent, 'apiVersion' | 'kind'>;

/** An event, and when it came, by the monotonic clock. */
interface Held {
  readonly event: Event;
  readonly since: number;
}

/** Events are passed on together, so that the process is not asked for each of them. */
const everyMs = 50;
/** Without a question from time to time, the process stops recording. */
const idleMs = 20_000;
/** The process may not reach an endpoint at all. */
const patienceMs = 1_000;

/**
 * Holds the openings of connections back until the process that forwards them has chosen an endpoint, which it does after
 * the kernel reports the opening. Events of one connection keep their order.
 */
export class HeldEvents {
  readonly #endpoints: Pick<ForwardedEndpoints, 'update' | 'placed'>;
  readonly #clock: Clock;
  readonly #pass: (event: Event) => void;
  #held: Held[] = [];
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(
    endpoints: Pick<ForwardedEndpoints, 'update' | 'placed'>,
    clock: Clock,
    pass: (event: Event) => void,
  ) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#pass = pass;
  }

  /** From now on the process records which endpoints it chooses. */
  async start(): Promise<void> {
    await this.#endpoints.update();
    this.#schedule();
  }

  add(event: Event): void {
    this.#held.push({ event, since: this.#clock.monotonic() });
    if (this.#held.length === 1) this.#schedule();
  }

  /** Passes on what is held, with what is known by now. */
  flush(): void {
    for (const held of this.#held) this.#pass(this.#placed(held));
    this.#held = [];
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (this.#isClosed) return;
    const ms = this.#held.length > 0 ? everyMs : idleMs;
    this.#timer = this.#clock.setTimeout(() => void this.#release(), ms);
  }

  async #release(): Promise<void> {
    await this.#endpoints.update();
    if (this.#isClosed) return;
    const held = this.#held;
    this.#held = [];
    const waiting = new Set<string>();
    const deadline = this.#clock.monotonic() - patienceMs;
    for (const each of held) {
      const event = this.#placed(each);
      const id = event.flow ? idOf(event.flow) : '';
      const isOpening = event.event === 'Opened' && event.flow?.endpoint === null && each.since > deadline;
      if (!isOpening && !waiting.has(id)) this.#pass(event);
      else {
        waiting.add(id);
        this.#held.push(each);
      }
    }
    this.#schedule();
  }

  #placed({ event, since }: Held): Event {
    if (!event.flow) return event;
    const notBefore = event.event === 'Opened' ? since - patienceMs : 0;
    return { ...event, flow: this.#endpoints.placed(event.flow, notBefore) };
  }
}

function idOf({ family, service, client, frontend }: FlowItem): string {
  return `${family} ${service} ${client} ${frontend}`;
}
