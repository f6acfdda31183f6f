import { setTimeout as sleep } from 'node:timers/promises';
import { families } from '../../src/model/ip.ts';
import type { Ask, Host } from '../cluster/lab/host.ts';
import { paced } from '../cluster/lab/pace.ts';
import type { Outcome } from '../cluster/lab/traffic.ts';
import { addressBooks } from '../contract/address-book.ts';
import type { Landscape } from '../contract/landscape.ts';
import { destinationOf, senderOf } from '../explain/packets.ts';
import type { Dice } from './dice.ts';
import type { Ledger } from './ledger.ts';
import type { Model } from './model/model.ts';
import type { SoakPacket } from './model/packet.ts';
import { type Seen, unserved } from './model/promise.ts';
import { SourcePorts } from './model/source-ports.ts';
import { patience } from './model/tolerances.ts';

const senders = ['pod', 'remote', 'client', 'stranger', 'node'] as const;
const targets = ['clusterIP', 'clusterIP', 'nodePort', 'second', 'external', 'loadBalancer'] as const;
const seenAs: Readonly<Record<string, Seen>> = { rejected: 'REJECT', silence: 'DROP', reset: 'RESET' };

/** Connections at a time, and the pause of each client between two: some hundred connections in a second. */
const WORKERS = 6;
const PAUSE_MS = 10;
/** Of the packets that nobody will answer, most are not sent: they show little, and dropped ones take long. */
const HOPELESS_SENT = 0.1;

/** A packet as it is sent. */
export interface Route {
  readonly host: Host;
  readonly question: Ask;
  readonly source: string;
}

/** Makes connections to random addresses of services until it is stopped. */
export class Traffic {
  readonly #landscape: Landscape;
  readonly #model: Model;
  readonly #ledger: Ledger;
  readonly #dice: Dice;
  readonly #services: readonly number[];
  readonly #ports = new SourcePorts();
  readonly #underWay = new Set<string>();
  readonly #workers: Promise<void>[] = [];
  #isOver = false;

  constructor(landscape: Landscape, model: Model, ledger: Ledger, dice: Dice, services: readonly number[]) {
    this.#landscape = landscape;
    this.#model = model;
    this.#ledger = ledger;
    this.#dice = dice;
    this.#services = services;
  }

  start(): void {
    for (let i = 0; i < WORKERS; i++) this.#workers.push(this.#work());
  }

  /** Stops after the connections that are under way. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#workers);
  }

  randomPacket(): SoakPacket {
    const to = this.#dice.pick(targets);
    const from = this.#dice.pick(senders);
    return {
      n: this.#dice.pick(this.#services),
      family: this.#dice.pick(families),
      // A process of the node sends from the second address itself.
      from: to === 'second' && from === 'node' ? 'client' : from,
      to,
      transport: this.#dice.pick(['tcp', 'udp']),
    };
  }

  /** How a packet is sent, from a port that is new to its destination; undefined when no port is left. */
  route(packet: SoakPacket): Route | undefined {
    const { n, family, from, to, transport } = packet;
    const { host, source } = senderOf(from as (typeof senders)[number], addressBooks[family]);
    const [address, port] = destinationOf(
      to as (typeof targets)[number],
      { n, spec: { endpoints: [] } },
      addressBooks[family],
    );
    const sourcePort = this.#ports.take(source, `${transport} ${address} ${port}`);
    if (sourcePort === undefined) return undefined;
    return {
      host: this.#landscape.host(host),
      question: { transport, address, port, source, sourcePort, timeoutMs: paced(patience.answerMs) },
      source,
    };
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      await this.#connect(this.randomPacket());
      await sleep(paced(PAUSE_MS));
    }
  }

  async #connect(packet: SoakPacket): Promise<void> {
    // An ICMP error names no source port: two connections to one destination would both get it.
    const key = `${packet.n} ${packet.family} ${packet.from} ${packet.to} ${packet.transport}`;
    const now = performance.now();
    const promises = this.#model.promises(packet, now, now);
    const isHopeless = [...promises].every((seen) => unserved.includes(seen));
    if (this.#underWay.has(key) || (isHopeless && !this.#dice.isLucky(HOPELESS_SENT))) return;
    const route = this.route(packet);
    if (!route) return;
    this.#underWay.add(key);
    try {
      const { host, question } = route;
      const wait = isHopeless && promises.has('DROP') ? { timeoutMs: paced(patience.silenceMs) } : {};
      const outcome = await host.ask({ ...question, ...wait });
      this.#ledger.judge(packet, seenOf(outcome), now, performance.now());
    } finally {
      this.#underWay.delete(key);
    }
  }
}

function seenOf(outcome: Outcome): Seen {
  if (outcome.kind === 'answered') return outcome.by;
  return outcome.kind === 'failed' ? outcome.code : (seenAs[outcome.kind] ?? outcome.kind);
}
