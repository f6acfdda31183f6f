import type { Outlet } from './faults.ts';
import { resources, type ServedResource } from './resources.ts';
import type { Selector } from './selectors.ts';
import type { Change, Store, StoredObject } from './store.ts';

export interface WatchOptions {
  readonly resource: ServedResource;
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

const chunkLength = 65_536;

/** One open watch. Tests can make it fail in many ways. */
export class Watch {
  readonly resource: ServedResource;
  readonly #store: Store;
  readonly #options: WatchOptions;
  readonly #outlet: Outlet;
  readonly #timers: NodeJS.Timeout[] = [];
  #unsubscribe: () => void = () => {};
  #last: string | undefined;
  #stalled = false;
  #closed = false;

  constructor(store: Store, outlet: Outlet, options: WatchOptions) {
    this.resource = options.resource;
    this.#store = store;
    this.#outlet = outlet;
    this.#options = options;
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
    this.#write(bookmarkFrame(this.resource, this.#store.version, false));
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
    this.#write('{"type":"MODIFIED","object":{"metadata":{"na');
    this.#finish();
    setImmediate(() => this.#outlet.destroy());
  }

  garbage(): void {
    this.#write('\u0000\u0001 not JSON at all }{\n');
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
    if (event !== undefined) this.#write(frame(this.resource, ...event));
  }

  /** Reports an error the way the server does inside a watch, and ends. */
  error(code: number, reason: string, message: string): void {
    const object = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      reason,
      code,
    };
    this.#write(`${JSON.stringify({ type: 'ERROR', object })}\n`);
    this.end();
  }

  /** Sends any text as an event. */
  raw(text: string): void {
    this.#write(text);
  }

  #sendInitial(): void {
    const { matches, marksInitialEvents } = this.#options;
    let chunk = '';
    for (const object of this.#store.list(this.resource)) {
      if (!matches(object.raw)) continue;
      chunk += frame(this.resource, 'ADDED', object);
      if (chunk.length < chunkLength) continue;
      this.#write(chunk);
      chunk = '';
    }
    if (chunk !== '') this.#write(chunk);
    if (marksInitialEvents) this.#write(bookmarkFrame(this.resource, this.#store.version, true));
  }

  #send(change: Change): void {
    const event = this.#eventOf(change);
    if (event === undefined) return;
    this.#last = frame(this.resource, ...event);
    this.#write(this.#last);
  }

  /** The event for a change, as the selector of this watch sees it; undefined when it does not concern the watch. */
  #eventOf({ before, after, version }: Change): [EventType, StoredObject] | undefined {
    const was = before !== undefined && this.#options.matches(before.raw) ? before : undefined;
    const is = after !== undefined && this.#options.matches(after.raw) ? after : undefined;
    if (is !== undefined) return [was === undefined ? 'ADDED' : 'MODIFIED', is];
    return was === undefined ? undefined : ['DELETED', atVersion(was, version)];
  }

  #write(text: string): void {
    if (!this.#stalled && !this.#closed) this.#outlet.write(text);
  }

  #finish(): void {
    this.#closed = true;
    this.#unsubscribe();
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/** A deletion carries the last form of the object under the version of the deletion. */
function atVersion(object: StoredObject, version: number): StoredObject {
  const raw = { ...object.raw, metadata: { ...object.raw.metadata, resourceVersion: String(version) } };
  return { ...object, version, raw, json: JSON.stringify(raw) };
}

function frame(resource: ServedResource, type: EventType, object: StoredObject): string {
  const { kind, apiVersion } = resources[resource];
  return `{"type":"${type}","object":{"kind":"${kind}","apiVersion":"${apiVersion}",${object.json.slice(1)}}\n`;
}

function bookmarkFrame(resource: ServedResource, version: number, initialEventsEnd: boolean): string {
  const { kind, apiVersion } = resources[resource];
  const annotations = initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  const metadata = { resourceVersion: String(version), creationTimestamp: null, ...annotations };
  return `${JSON.stringify({ type: 'BOOKMARK', object: { kind, apiVersion, metadata } })}\n`;
}
