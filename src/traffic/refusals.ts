import type { Packet } from '../backends/inspection.ts';
import type { NodeFacts } from '../backends/node-facts.ts';
import type { PacketRules } from '../backends/packet-rules.ts';
import { explainPacket } from '../inspect/explain-packet.ts';
import type { FlowItem } from '../inspect/traffic-api.ts';
import type { LoggedPacket } from '../kernel/nflog/codec.ts';
import { nameOf, protocolNumbers } from '../kernel/numbers.ts';
import type { Clock } from '../lib/clock.ts';
import { keyText } from '../model/address-key.ts';
import { type Family, joinHostPort } from '../model/ip.ts';
import type { Refusal } from './figures.ts';
import type { RefusalEvent } from './observation.ts';
import type { ObservedService, ServiceIndex } from './service-index.ts';

/** What decides about packets of one family, in the mode that runs. */
export interface Decider {
  facts(): Promise<NodeFacts>;
  readonly rules: PacketRules;
}

export interface RefusalsOptions {
  readonly indexes: ReadonlyMap<Family, ServiceIndex>;
  readonly decider: (family: Family) => Decider;
  /** Names of interfaces by their number. */
  readonly interfaces: () => Promise<ReadonlyMap<number, string>>;
  readonly onRefused: (refused: RefusedConnection) => void;
  readonly clock: Clock;
}

export interface RefusedConnection {
  readonly packet: LoggedPacket;
  readonly service: ObservedService;
  readonly how: Refusal;
  readonly event: RefusalEvent;
  readonly flow: FlowItem;
  readonly reason: string;
}

/** A client tries again for about a minute. */
const sameAttemptMs = 60_000;
const maxRemembered = 50_000;
/** Addresses of the node are read again after this time. */
const factsMs = 5_000;

const events: Readonly<Record<Refusal, RefusalEvent>> = {
  rejected: 'Rejected',
  dropped: 'Dropped',
  filtered: 'Filtered',
};

/** Tells which connections the proxy refuses, and why, from the first packets to destinations that may refuse them. */
export class Refusals {
  readonly #options: RefusalsOptions;
  readonly #attempts = new Map<string, number>();
  #interfaces: ReadonlyMap<number, string> = new Map();
  readonly #facts = new Map<Family, { readonly at: number; readonly facts: Promise<NodeFacts> }>();

  constructor(options: RefusalsOptions) {
    this.#options = options;
  }

  async take(packet: LoggedPacket): Promise<void> {
    const { family, destination, destinationPort, protocol } = packet;
    const service = this.#options.indexes.get(family)?.at(destination, destinationPort, protocol);
    if (!service || this.#isRepeated(packet)) return;
    const facts = await this.#factsOf(family);
    const question = await this.#packetOf(packet);
    const { rules } = this.#options.decider(family);
    const plans = new Map([[service.key, service.plan]]);
    const { fate, reasons, isFiltered } = explainPacket(question, plans, facts, rules);
    if (fate.action !== 'drop' && fate.action !== 'reject') return;
    const how = fate.action === 'reject' ? 'rejected' : isFiltered ? 'filtered' : 'dropped';
    const flow = flowOf(packet, service.key);
    this.#options.onRefused({ packet, service, how, event: events[how], flow, reason: reasons.join(' ') });
  }

  /** Whether this is another packet of a connection that was seen: a client tries several times. */
  #isRepeated({ source, sourcePort, destination, destinationPort, protocol }: LoggedPacket): boolean {
    const now = this.#options.clock.monotonic();
    const id = `${source} ${sourcePort} ${destination} ${destinationPort} ${protocol}`;
    const last = this.#attempts.get(id);
    this.#attempts.delete(id);
    this.#attempts.set(id, now);
    const [oldest] = this.#attempts.keys();
    if (this.#attempts.size > maxRemembered && oldest !== undefined) this.#attempts.delete(oldest);
    return last !== undefined && now - last < sameAttemptMs;
  }

  async #packetOf(packet: LoggedPacket): Promise<Packet> {
    const { family, interfaceIndex } = packet;
    if (interfaceIndex !== 0 && !this.#interfaces.has(interfaceIndex)) {
      this.#interfaces = await this.#options.interfaces();
    }
    const origin = interfaceIndex === 0 ? 'node' : { interface: this.#interfaces.get(interfaceIndex) ?? '' };
    return {
      family,
      protocol: nameOf(protocolNumbers, packet.protocol) ?? 'TCP',
      source: keyText(packet.source),
      destination: keyText(packet.destination),
      port: packet.destinationPort,
      origin,
    };
  }

  #factsOf(family: Family): Promise<NodeFacts> {
    const now = this.#options.clock.monotonic();
    const known = this.#facts.get(family);
    if (known && now - known.at < factsMs) return known.facts;
    const facts = this.#options.decider(family).facts();
    this.#facts.set(family, { at: now, facts });
    return facts;
  }
}

function flowOf(packet: LoggedPacket, service: string): FlowItem {
  const protocol = nameOf(protocolNumbers, packet.protocol) ?? 'TCP';
  return {
    family: packet.family,
    protocol,
    client: joinHostPort(keyText(packet.source), packet.sourcePort),
    frontend: joinHostPort(keyText(packet.destination), packet.destinationPort),
    service,
    endpoint: null,
    pod: null,
    state: protocol === 'TCP' ? 'SYN_SENT' : 'UNREPLIED',
    ageSeconds: null,
    packetsToEndpoint: null,
    packetsToClient: null,
    bytesToEndpoint: null,
    bytesToClient: null,
  };
}
