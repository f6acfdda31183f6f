import assert from 'node:assert/strict';
import type { Ask, Host, OpenConversation } from '../cluster/lab/host.ts';
import { paced } from '../cluster/lab/pace.ts';
import type { Outcome, Transport } from '../cluster/lab/traffic.ts';
import { eventually } from '../eventually.ts';
import { type AddressBook, addressBooks, type HostName } from './address-book.ts';
import { isBrief } from './brief.ts';
import type { Cluster } from './cluster.ts';
import { promisedByIpvs } from './ipvs-promises.ts';
import { runInNode } from './node-commands.ts';
import { type NumberedService, nodePortOf, protocolsOf, servicePortOf } from './objects.ts';
import type { Answers, ExpectedPacket, Fate, Packet, ServiceSpec, Source, Target } from './story.ts';

/** An endpoint of four that is never chosen in this many draws is not in the list: by chance, that is 1 in 10^12. */
const MAX_DRAWS = 96;
/** With this many questions, an endpoint that should not answer is almost certainly found. */
const MIN_DRAWS = isBrief ? 4 : 16;
const DRAWS_AT_ONCE = isBrief ? 4 : 8;

/** An answer arrives within milliseconds; the rest is for a busy machine. */
const PATIENCE_MS = paced(5_000);
/** Short, because a rejection is seen at once when it arrives. */
const SILENCE_MS = paced(500);

const worldlyClients = ['client', 'stranger', 'tenant'] as const;
const transports = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;
const fates: Readonly<Record<string, Fate>> = { rejected: 'REJECT', silence: 'DROP', reset: 'RESET' };

/** One run of a story: its services, and packets of one family. */
export class Scene {
  readonly cluster: Cluster;
  readonly book: AddressBook;
  readonly #services = new Map<string, NumberedService>();

  constructor(cluster: Cluster, book: AddressBook) {
    this.cluster = cluster;
    this.book = book;
  }

  /** The same story, seen in the other family. */
  get otherFamily(): Scene {
    const other = new Scene(this.cluster, addressBooks[this.book.family === 'IPv4' ? 'IPv6' : 'IPv4']);
    for (const [name, service] of this.#services) other.#services.set(name, service);
    return other;
  }

  /** Creates or changes a service; resolves when that is in effect. */
  async apply(spec: ServiceSpec, name = 'web'): Promise<void> {
    this.put(spec, name);
    await this.cluster.settled();
  }

  /** Like `apply`, but does not wait. */
  put(spec: ServiceSpec, name = 'web'): void {
    const service = this.#services.has(name) ? { ...this.service(name), spec } : this.cluster.number(spec);
    this.#services.set(name, service);
    this.cluster.put(service);
  }

  /** Deletes the service and its slices; resolves when that is in effect. Packets to its addresses stay possible. */
  async remove(name = 'web'): Promise<void> {
    this.cluster.remove(this.service(name));
    await this.cluster.settled();
  }

  service(name = 'web'): NumberedService {
    const service = this.#services.get(name);
    assert.ok(service, `the story has no service ${name}`);
    return service;
  }

  /** Removes everything that the story put. */
  close(): void {
    for (const service of this.#services.values()) this.cluster.remove(service);
  }

  /** Sends all packets at the same time, and checks the outcome of each. */
  async expect(...packets: readonly ExpectedPacket[]): Promise<void> {
    await Promise.all(packets.map((packet) => this.#check(packet)));
  }

  /** Repeats one packet until its outcome is as expected, for effects that follow some time after a sync. */
  async eventually(packet: ExpectedPacket): Promise<void> {
    const isAsPromised = async () => {
      const seen = this.#verdict(packet, await this.#once(packet, SILENCE_MS));
      assert.ok(matches(seen, this.#promised(packet)), `it became ${JSON.stringify(seen)}`);
      return true;
    };
    await eventually(`${describe(packet)} has the promised outcome`, isAsPromised, { everyMs: 20 });
  }

  /** Waits until a packet is answered at all. */
  async ready(packet: Packet): Promise<void> {
    const isAnswered = async () => (await this.#once(packet, SILENCE_MS)).kind === 'answered';
    await eventually(`${describe(packet)} is answered`, isAnswered, { everyMs: 20 });
  }

  /** The outcome of one packet. */
  outcome(packet: Packet): Promise<Outcome> {
    return this.#once(packet, PATIENCE_MS);
  }

  /** The name of the server that answers one packet; fails when none does. */
  async answerer(packet: Packet): Promise<string> {
    const outcome = await this.outcome(packet);
    assert.ok(outcome.kind === 'answered', `${describe(packet)} became ${JSON.stringify(outcome)}`);
    return outcome.by;
  }

  /** Opens a TCP connection that stays open. */
  open(packet: Packet): Promise<OpenConversation> {
    return this.#sender(packet.from).open({ ...this.question(packet), timeoutMs: PATIENCE_MS });
  }

  /** The output of `ping` for one echo request. */
  async ping(packet: Packet): Promise<string> {
    const { namespace } = this.#sender(packet.from);
    const { address } = this.question(packet);
    const pinging = runInNode('ip', 'netns', 'exec', namespace, 'ping', '-c1', '-W5', address);
    return pinging.catch((error: { stdout?: string }) => error.stdout ?? String(error));
  }

  question(packet: Packet): Ask {
    const { to, of: name = 'web', transport, sourcePort, datagram } = packet;
    const service = this.service(name);
    const isNodePort = to === 'nodePort' || to === 'second' || to === 'loopback' || to === 'loopback2';
    const port = isNodePort ? nodePortOf(service.n) : servicePortOf(service.spec);
    const source = this.#source(packet);
    return {
      transport: transport ?? transportOf(service.spec),
      address: this.address(to, service.n),
      port: packet.port ?? port,
      ...(source !== undefined && { source }),
      ...(sourcePort !== undefined && { sourcePort }),
      ...(datagram && { datagram }),
    };
  }

  address(to: Target, n: number): string {
    const { book } = this;
    switch (to) {
      case 'clusterIP':
      case 'external':
      case 'loadBalancer':
        return book.service(n)[to];
      case 'nodePort':
        return book.node;
      case 'second':
        return book.nodeSecond;
      case 'loopback':
      case 'unallocated':
        return book[to];
      case 'loopback2':
        return '127.0.0.2';
    }
  }

  /** The outcome that this mode promises for a packet in this family. */
  #promised(packet: ExpectedPacket): Answers | Fate {
    const { mode } = this.cluster;
    const { expect, differs } = packet;
    const different = differs?.(mode, this.book.family);
    if (different !== undefined) return different;
    return mode === 'ipvs' ? promisedByIpvs(packet, this.service(packet.of).spec) : expect;
  }

  async #check(packet: ExpectedPacket): Promise<void> {
    const expect = this.#promised(packet);
    if (typeof expect === 'string') {
      const seen = this.#verdict(
        packet,
        await this.#once(packet, expect === 'DROP' ? SILENCE_MS : PATIENCE_MS),
      );
      assert.deepEqual(seen, expect, `${describe(packet)} in ${this.book.family}`);
      return;
    }
    assert.deepEqual(
      await this.#survey(packet, expect),
      expect,
      `${describe(packet)} in ${this.book.family}`,
    );
  }

  /** Asks until every expected server has answered, and often enough to find servers that should not. */
  async #survey(packet: ExpectedPacket, expected: Answers): Promise<Answers | Fate> {
    const seen: Record<string, string> = {};
    const wanted = Object.keys(expected);
    const { turnstile } = this.cluster.landscape;
    // Datagrams from one port are one flow; its endpoint is chosen only once.
    const [atOnce, max] = packet.sourcePort === undefined ? [DRAWS_AT_ONCE, MAX_DRAWS] : [1, 1];
    for (let draws = 0; draws < max; draws += atOnce) {
      if (draws >= MIN_DRAWS && wanted.every((name) => name in seen)) break;
      const asking = Array.from({ length: atOnce }, () =>
        turnstile.pass(() => this.#once(packet, PATIENCE_MS)),
      );
      for (const outcome of await Promise.all(asking)) {
        const verdict = this.#verdict(packet, outcome);
        if (typeof verdict === 'string') return verdict;
        for (const [by, source] of Object.entries(verdict)) {
          seen[by] = seen[by] === undefined || seen[by] === source ? source : `${seen[by]} and ${source}`;
        }
      }
    }
    return seen as Answers;
  }

  #once(packet: Packet, timeoutMs: number): Promise<Outcome> {
    return this.#sender(packet.from).ask({ ...this.question(packet), timeoutMs });
  }

  #verdict(packet: Packet, outcome: Outcome): Answers | Fate {
    if (outcome.kind !== 'answered') {
      return fates[outcome.kind] ?? (JSON.stringify(outcome) as Fate);
    }
    return { [outcome.by]: this.#sourceSeen(packet, outcome.source) };
  }

  #sourceSeen(packet: Packet, seen: string): string {
    if (seen === this.book.node) return 'MASQ';
    return seen === this.#source(packet) ? 'OWN' : seen;
  }

  /** The source address of a packet; undefined when the kernel shall choose it. */
  #source({ from, to, source }: Packet): string | undefined {
    if (source !== undefined) return source;
    const client = worldlyClients.find((name) => name === from);
    if (client) return this.book.clients[client];
    // Not the address used for masquerading, so that a packet without masquerading is noticed.
    if (from === 'node') return to === 'loopback' || to === 'loopback2' ? undefined : this.book.nodeSecond;
    return this.book.hosts[from as HostName];
  }

  #sender(from: Source): Host {
    const { landscape } = this.cluster;
    const client = worldlyClients.find((name) => name === from);
    return landscape.host(client ? 'outside' : (from as HostName | 'node'));
  }
}

function transportOf(spec: ServiceSpec): Transport {
  return transports[protocolsOf(spec)[0] ?? 'TCP'];
}

function matches(seen: Answers | Fate, expected: Answers | Fate): boolean {
  return JSON.stringify(seen) === JSON.stringify(expected);
}

function describe({ from, to, of: name = 'web', transport, port }: Packet): string {
  const detail = [transport, port === undefined ? undefined : `port ${port}`].filter(Boolean).join(' ');
  return `${from} → ${to} of ${name}${detail && ` (${detail})`}`;
}
