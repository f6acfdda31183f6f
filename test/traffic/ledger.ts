import assert from 'node:assert/strict';
import type { TrafficGrouping, TrafficItem } from '../../src/inspect/traffic-api.ts';
import { joinHostPort } from '../../src/model/ip.ts';
import type { AddressBook } from '../contract/address-book.ts';
import { podPort } from '../contract/objects.ts';
import type { Scene } from '../contract/scene.ts';
import type { Packet } from '../contract/story.ts';

/** Packets that are sent several times, each time as a connection or a flow of its own. */
export interface Sending extends Packet {
  readonly times: number;
}

/** Figures by what they are of: `web/tcp opened`, `web/udp to A bytes in`, `web/tcp from 10.244.1.5 opened`. */
export type Figures = Map<string, number>;

/** The bytes of a question of the lab's clients, over UDP. */
const questionBytes = 1;

/**
 * What was sent, as the clients and the answers tell it. Bytes are those of UDP, where each flow has one packet each way. In
 * TCP, the number of packets depends on the moment.
 */
export class Ledger {
  readonly #scene: Scene;
  /** The process forwards datagrams itself: it counts what they carry, and the kernel whole packets. */
  readonly #forwardsItself: boolean;
  readonly figures: Readonly<Record<TrafficGrouping, Figures>> = {
    service: new Map(),
    endpoint: new Map(),
    client: new Map(),
  };

  constructor(scene: Scene, forwardsItself: boolean) {
    this.#scene = scene;
    this.#forwardsItself = forwardsItself;
  }

  /** Fails when one is not answered. */
  async send({ times, ...packet }: Sending): Promise<void> {
    const { of: name = 'web', transport = 'tcp' } = packet;
    const service = `${name}/${transport}`;
    for (let i = 0; i < times; i++) {
      const outcome = await this.#scene.outcome({ ...packet, transport });
      assert.ok(outcome.kind === 'answered', `${JSON.stringify(packet)} became ${outcome.kind}`);
      const { by, source } = outcome;
      const answerBytes = Buffer.byteLength(`${JSON.stringify({ by, source })}\n`);
      const subjects = {
        service,
        endpoint: `${service} to ${by}`,
        client: `${service} from ${this.#scene.question(packet).source}`,
      };
      for (const grouping of ['service', 'endpoint', 'client'] as const) {
        this.#add(grouping, `${subjects[grouping]} opened`, 1);
        if (transport !== 'udp') continue;
        const header = this.#headerBytes(grouping);
        this.#add(grouping, `${subjects[grouping]} bytes in`, header + questionBytes);
        this.#add(grouping, `${subjects[grouping]} bytes out`, header + answerBytes);
      }
    }
  }

  #add(grouping: TrafficGrouping, key: string, amount: number): void {
    const figures = this.figures[grouping];
    figures.set(key, (figures.get(key) ?? 0) + amount);
  }

  /** What an IP and a UDP header take. */
  #headerBytes(grouping: TrafficGrouping): number {
    if (this.#forwardsItself && grouping !== 'client') return 0;
    return this.#scene.book.family === 'IPv4' ? 28 : 48;
  }
}

/** The figures that a ledger has, of items of a report. `name` is that of their Service in the story. */
export function figuresOf(name: string, items: readonly TrafficItem[], book: AddressBook): Figures {
  const figures: Figures = new Map();
  for (const item of items.filter(({ family }) => family === book.family)) {
    const key = subjectOf(name, item, book);
    const { opened, bytesToEndpoint, bytesToClient } = item;
    const bytes = key.includes('/udp') ? { 'bytes in': bytesToEndpoint, 'bytes out': bytesToClient } : {};
    for (const [what, amount] of Object.entries({ opened, ...bytes })) {
      if (amount !== 0) figures.set(`${key} ${what}`, amount ?? Number.NaN);
    }
  }
  return figures;
}

/** `web/tcp`, `web/tcp to A` or `web/tcp from 10.244.1.5`. */
export function subjectOf(
  name: string,
  { service, endpoint, client }: Pick<TrafficItem, 'service' | 'endpoint' | 'client'>,
  book: AddressBook,
): string {
  const key = `${name}/${service.slice(service.lastIndexOf('/') + 1).toLowerCase()}`;
  if (client !== null) return `${key} from ${client}`;
  return endpoint === null ? key : `${key} to ${hostAt(endpoint, book)}`;
}

/** The host of the story with this endpoint. */
export function hostAt(endpoint: string, book: AddressBook): string {
  const found = Object.entries(book.hosts).find(([, address]) => endpoint === joinHostPort(address, podPort));
  return found?.[0] ?? endpoint;
}

export function sorted<Value>(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
}
