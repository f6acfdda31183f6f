import { type Clock, wallTimeOf } from '../lib/clock.ts';
import type { Family } from '../model/ip.ts';

/** What can happen, by a name that stays the same, for scripts. */
export type JournalEvent =
  /** The program started. */
  | 'Start'
  | 'Sync'
  | 'SyncFailed'
  /** What another program had changed was put right. */
  | 'Repair'
  /** An object cannot be programmed, or not fully. */
  | 'NotProgrammed'
  | 'WatchLost'
  | 'WatchRegained'
  /** The configuration file changed, or cannot be used. */
  | 'Configuration'
  /** A problem of `status` began. */
  | 'Problem'
  | 'ProblemSolved';

/** A Service that a change is about, as `namespace/name`. */
export interface ConcernedService {
  readonly service: string;
  /** From the change of its endpoints in the API to the end of the sync; undefined when the time of the change is unknown. */
  readonly latencyMs?: number | undefined;
}

/** One sync that succeeded. */
export interface SyncNote {
  readonly kind: 'full' | 'partial';
  readonly durationMs: number;
  /** Service ports whose plan changed. */
  readonly servicePorts: number;
  /** From the arrival of the first change to the end of the sync; undefined when no change asked for it. */
  readonly waitMs: number | undefined;
  /** The longest of all changes. */
  readonly latencyMs: number | undefined;
}

/** Something that happened, as the part of the program that knows of it writes it down. */
export interface JournalNote {
  readonly event: JournalEvent;
  readonly family?: Family;
  /** In one sentence; empty where the other fields say everything. */
  readonly text?: string;
  /** The first few Services that it is about. */
  readonly services?: readonly ConcernedService[];
  /** How many Services it is about; absent when `services` has all. */
  readonly serviceCount?: number;
  readonly sync?: SyncNote;
}

/** One or several equal events within a second. */
export interface JournalEntry {
  /** Of the first, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** The same by the monotonic clock, which nobody sets. */
  readonly notedAt: number;
  readonly event: JournalEvent;
  readonly family: Family | undefined;
  count: number;
  readonly texts: string[];
  readonly services: ConcernedService[];
  serviceCount: number;
  /** Sums over the syncs, but the longest times. */
  sync: SyncNote | undefined;
}

/** Writes to the journal. */
export type Journalist = Pick<Journal, 'note'>;

/** What an entry names at most. */
export const SERVICES_PER_ENTRY = 8;
const TEXTS_PER_ENTRY = 4;
const TEXT_LENGTH = 500;
/** Events of one kind within this time share an entry: 500 syncs a second would fill the journal in seconds. */
const SAME_ENTRY_MS = 1_000;
const KEPT_MS = 3_600_000;
/** By `sizeOf`, which counts a little too much. */
const KEPT_BYTES = 4 * 1024 * 1024;

/**
 * What happened in the last hour, in memory. Bounded: when an hour of entries is more than 4 MB, the oldest ones are
 * forgotten earlier.
 */
export class Journal {
  readonly #clock: Clock;
  readonly #keptBytes: number;
  /** The oldest first. */
  readonly #entries: JournalEntry[] = [];
  /** The latest entry of each kind. */
  readonly #latest = new Map<string, JournalEntry>();
  #bytes = 0;
  /** By the monotonic clock. */
  #completeSince: number;

  constructor(clock: Clock, keptBytes = KEPT_BYTES) {
    this.#clock = clock;
    this.#keptBytes = keptBytes;
    this.#completeSince = clock.monotonic();
  }

  note(note: JournalNote): void {
    const time = this.#clock.now();
    const notedAt = this.#clock.monotonic();
    const key = `${note.event} ${note.family} ${note.sync?.kind}`;
    const latest = this.#latest.get(key);
    if (latest && notedAt - latest.notedAt < SAME_ENTRY_MS) {
      this.#bytes -= sizeOf(latest);
      add(latest, note);
      this.#bytes += sizeOf(latest);
    } else {
      const entry = newEntry({ time, notedAt }, note);
      this.#latest.set(key, entry);
      this.#entries.push(entry);
      this.#bytes += sizeOf(entry);
    }
    this.#forget();
  }

  /** The entries, the oldest first. */
  entries(): readonly JournalEntry[] {
    this.#forget();
    return this.#entries;
  }

  /** Everything since then is in the journal, in milliseconds since the Unix epoch. */
  get completeSince(): number {
    const since = Math.max(this.#completeSince, this.#clock.monotonic() - KEPT_MS);
    return wallTimeOf(this.#clock, since);
  }

  #forget(): void {
    const now = this.#clock.monotonic();
    for (let first = this.#entries[0]; first; first = this.#entries[0]) {
      const isTooMuch = this.#bytes > this.#keptBytes;
      if (!isTooMuch && now - first.notedAt < KEPT_MS) return;
      this.#entries.shift();
      this.#bytes -= sizeOf(first);
      if (isTooMuch) this.#completeSince = this.#entries[0]?.notedAt ?? now;
    }
  }
}

function newEntry(times: Pick<JournalEntry, 'time' | 'notedAt'>, note: JournalNote): JournalEntry {
  const { event, family } = note;
  const entry: JournalEntry = {
    ...times,
    event,
    family,
    count: 0,
    texts: [],
    services: [],
    serviceCount: 0,
    sync: undefined,
  };
  add(entry, note);
  return entry;
}

function add(entry: JournalEntry, { text = '', services = [], serviceCount, sync }: JournalNote): void {
  entry.count++;
  addText(entry, text);
  const unnamed = (serviceCount ?? services.length) - services.length;
  entry.serviceCount += unnamed;
  for (const service of services) addService(entry, service);
  if (sync) entry.sync = entry.sync ? sumOf(entry.sync, sync) : sync;
}

function addText({ texts }: JournalEntry, text: string): void {
  const short = text.length > TEXT_LENGTH ? copyOf(`${text.slice(0, TEXT_LENGTH)}…`) : text;
  if (short !== '' && texts.length < TEXTS_PER_ENTRY && !texts.includes(short)) texts.push(short);
}

/** The part of a string keeps the whole string in memory; a copy does not. */
function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** A Service that changes again within a second is named once, with its longest latency. */
function addService(entry: JournalEntry, more: ConcernedService): void {
  const { services } = entry;
  const at = services.findIndex(({ service }) => service === more.service);
  const known = services[at];
  if (known) {
    services[at] = { service: known.service, latencyMs: longer(known.latencyMs, more.latencyMs) };
    return;
  }
  entry.serviceCount++;
  if (services.length < SERVICES_PER_ENTRY) services.push(more);
}

function sumOf(a: SyncNote, b: SyncNote): SyncNote {
  return {
    kind: b.kind,
    durationMs: Math.max(a.durationMs, b.durationMs),
    servicePorts: a.servicePorts + b.servicePorts,
    waitMs: longer(a.waitMs, b.waitMs),
    latencyMs: longer(a.latencyMs, b.latencyMs),
  };
}

export function longer(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

/** Bytes of memory, rounded up: objects and numbers take about 350, a Service 70 and its name, a text 40 and itself. */
function sizeOf({ texts, services }: JournalEntry): number {
  let size = 350;
  for (const text of texts) size += 40 + 2 * text.length;
  for (const { service } of services) size += 70 + service.length;
  return size;
}
