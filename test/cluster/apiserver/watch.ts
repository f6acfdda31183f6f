import type { Encoding } from './encoding.ts';
import type { Outlet } from './faults.ts';
import { resources, type ServedResource } from './resources.ts';
import type { Selector } from './selectors.ts';
import { ApiFault, statusOf } from './status.ts';
import type { Change, Store, StoredObject } from './store.ts';

export interface WatchOptions {
  readonly resource: ServedResource;
  readonly encoding: Encoding;
  /** Whether the watch selects an object. */
  readonly matches: Selector;
  /** The watch sends changes after this version; if undefined, it first sends all objects. */
  readonly since: number | undefined;
  /** Whether a bookmark marks the end of the initial objects. */
  readonly marksInitialEvents: boolean;
  readonly timeoutMs: number;
  /** Interval of bookmarks; undefined for none. */
  readonly bookmarkMs: number | undefined;
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

const eventsPerChunk = 50;

/** One open watch. Tests can make it fail in many ways. */
export class Watch {
  readonly resource: ServedResource;
  readonly #store: Store;
  readonly #options: WatchOptions;
  readonly #encoding: Encoding;
  readonly #outlet: Outlet;
  readonly #timers: NodeJS.Timeout[] = [];
  #unsubscribe: () => void = () => {};
  #last: Buffer | undefined;
  #stalled = false;
  #closed = false;

  constructor(store: Store, outlet: Outlet, options: WatchOptions) {
    this.resource = options.resource;
    this.#store = store;
    this.#outlet = outlet;
    this.#options = options;
    this.#encoding = options.encoding;
    outlet.onClose(() => this.#finish());
  }

  start(): void {
    const { since, timeoutMs, bookmarkMs } = this.#options;
    if (since === undefined) this.#sendInitial();
    else for (const change of this.#store.changesSince(this.resource, since)) this.#send(change);
    this.#unsubscribe = this.#store.subscribe((change) => {
      if (change.resource === this.resource) this.#send(change);
    });
    this.#timers.push(setTimeout(() => this.end(), timeoutMs));
    if (bookmarkMs !== undefined) this.#timers.push(setInterval(() => this.bookmark(), bookmarkMs));
  }

  get closed(): boolean {
    return this.#closed;
  }

  bookmark(): void {
    this.#write(this.#bookmark(false));
  }

  /** Ends the watch as a time-out does. */
  end(): void {
    this.#finish();
    if (!this.#stalled) this.#outlet.end();
  }

  /** Cuts the connection between two events. */
  drop(): void {
    this.#finish();
    this.#outlet.destroy();
  }

  /** Cuts the connection inside an event. */
  cutInsideEvent(): void {
    const event = this.#bookmark(false);
    this.#write(event.subarray(0, event.length / 2));
    this.#finish();
    setImmediate(() => this.#outlet.destroy());
  }

  garbage(): void {
    this.#write(this.#encoding.garbage);
  }

  /** Sends nothing from now on, and leaves the connection open. */
  stall(): void {
    this.#stalled = true;
  }

  /** Sends the last event once more. */
  duplicate(): void {
    if (this.#last !== undefined) this.#write(this.#last);
  }

  /** Sends an earlier event once more. */
  replay(change: Change): void {
    const event = this.#eventOf(change);
    if (event !== undefined) this.#write(event);
  }

  /** Reports an error the way the server does inside a watch, and ends. */
  error(code: number, reason: string, message: string): void {
    const status = statusOf(new ApiFault(code, reason, message));
    this.#write(this.#encoding.anyEvent('ERROR', status));
    this.end();
  }

  /** Sends an event of any type with any object of this resource, or with none. */
  send(type: string, object?: object): void {
    this.#write(this.#encoding.anyEvent(type, object && { ...this.#type, ...object }));
  }

  #sendInitial(): void {
    const { matches, marksInitialEvents } = this.#options;
    const objects = this.#store.list(this.resource).filter(({ raw }) => matches(raw));
    for (let i = 0; i < objects.length; i += eventsPerChunk) {
      const chunk = objects.slice(i, i + eventsPerChunk);
      this.#write(Buffer.concat(chunk.map((object) => this.#event('ADDED', object))));
    }
    if (marksInitialEvents) this.#write(this.#bookmark(true));
  }

  #send(change: Change): void {
    const event = this.#eventOf(change);
    if (event === undefined) return;
    this.#last = event;
    this.#write(event);
  }

  /** The event for a change, as the selector of this watch sees it; undefined when it does not concern the watch. */
  #eventOf({ before, after, version }: Change): Buffer | undefined {
    const was = before !== undefined && this.#options.matches(before.raw) ? before : undefined;
    const is = after !== undefined && this.#options.matches(after.raw) ? after : undefined;
    if (is !== undefined) return this.#event(was === undefined ? 'ADDED' : 'MODIFIED', is);
    return was === undefined ? undefined : this.#event('DELETED', was.at(version));
  }

  #event(type: EventType, object: StoredObject): Buffer {
    return this.#encoding.event(type, this.resource, object);
  }

  #bookmark(initialEventsEnd: boolean): Buffer {
    const annotations = initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
    const metadata = {
      resourceVersion: String(this.#store.version),
      creationTimestamp: null,
      ...annotations,
    };
    return this.#encoding.anyEvent('BOOKMARK', { ...this.#type, metadata });
  }

  get #type(): { kind: string; apiVersion: string } {
    const { kind, apiVersion } = resources[this.resource];
    return { kind, apiVersion };
  }

  #write(bytes: Buffer): void {
    if (!this.#stalled && !this.#closed) this.#outlet.write(bytes);
  }

  #finish(): void {
    this.#closed = true;
    this.#unsubscribe();
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
