import { randomUUID } from 'node:crypto';

/** The object an event is about. */
export interface EventRegarding {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for objects without a namespace; their events live in `default`. */
  readonly namespace?: string;
  readonly name: string;
}

/** What happened, as the rest of the program says it. */
export interface EventInput {
  readonly regarding: EventRegarding;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

export interface EventSeries {
  readonly count: number;
  readonly lastObservedTime: string;
}

/** An `events.k8s.io/v1` Event as it is sent. */
export interface EventBody {
  readonly kind: 'Event';
  readonly apiVersion: 'events.k8s.io/v1';
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly eventTime: string;
  readonly series?: EventSeries;
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly action: string;
  readonly reason: string;
  readonly regarding: EventRegarding;
  readonly note?: string;
  readonly type: string;
  readonly deprecatedSource: Readonly<Record<string, never>>;
  readonly deprecatedFirstTimestamp: null;
  readonly deprecatedLastTimestamp: null;
}

const reportingController = 'kube-proxy';
/** The API server refuses an event whose note is longer. */
const maxNoteBytes = 1_024;
const maxNameLength = 253;
const dnsSubdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Builds the event; `unixNs` is its time and makes its name. */
export function eventBody(input: EventInput, hostName: string, unixNs: bigint): EventBody {
  const { regarding, note } = input;
  return {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    metadata: { name: eventName(regarding.name, unixNs), namespace: regarding.namespace || 'default' },
    eventTime: microTime(unixNs),
    reportingController,
    reportingInstance: `${reportingController}-${hostName}`,
    action: input.action,
    reason: input.reason,
    regarding,
    ...(note === '' ? {} : { note: cutToBytes(note, maxNoteBytes) }),
    type: input.type,
    deprecatedSource: {},
    deprecatedFirstTimestamp: null,
    deprecatedLastTimestamp: null,
  };
}

/** Events with equal keys form a series. The reporter is the same for all of one recorder; the note is not compared. */
export function seriesKey({ regarding, type, reason, action }: EventInput): string {
  const { apiVersion, kind, namespace, name } = regarding;
  return JSON.stringify([type, reason, action, apiVersion, kind, namespace ?? '', name]);
}

/** RFC 3339 in UTC with exactly six decimals. */
export function microTime(unixNs: bigint): string {
  const seconds = new Date(Number(unixNs / 1_000_000n)).toISOString().slice(0, 19);
  const micros = (unixNs / 1_000n) % 1_000_000n;
  return `${seconds}.${micros.toString().padStart(6, '0')}Z`;
}

function eventName(regardingName: string, unixNs: bigint): string {
  const name = `${regardingName}.${unixNs.toString(16)}`;
  return name.length <= maxNameLength && dnsSubdomain.test(name) ? name : randomUUID();
}

/** Cuts at a character boundary. */
function cutToBytes(text: string, limit: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return text;
  return new TextDecoder().decode(bytes.subarray(0, limit)).replace(/\uFFFD+$/, '');
}
