import type { Hook } from '../kernel/nft/objects.ts';
import type { PacketView } from '../kernel/nft/walk/partial-packet.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import { formatIP, splitIPPort, toIP } from '../model/ip.ts';
import type { Delivery, Packet, Target } from './inspection.ts';

/** Facts of the node that decide about the way of a packet. */
export interface WayFacts {
  /** This node's own address; empty when unknown. */
  readonly nodeIP: string;
  isLocal(address: string): boolean;
  /** Name of the interface by which packets to an address leave; '' when that is not known. */
  interfaceTowards(address: string): Promise<string>;
}

/** One hook on the way of a packet. */
export interface Stage {
  readonly hook: Hook;
  /** The packet in chains that come before the proxy changes it at this hook. */
  readonly view: PacketView;
  /** From this priority on, chains see the packet as the proxy has changed it. */
  readonly change?: { readonly priority: number; readonly view: PacketView; readonly mark: StageMark };
  /** Chains from this priority on do not see the packet: the proxy takes it out there. */
  readonly until?: number;
  /** Conntrack has seen it at an earlier hook, which translated addresses: chains of type nat do not see it. */
  readonly isTracked?: boolean;
}

/** Bits that the proxy sets in the mark, and bits of which that is not known. */
export interface StageMark {
  readonly set: number;
  readonly unknown: number;
}

const noMark: StageMark = { set: 0, unknown: 0 };
/** After masquerading, the proxy may have cleared bits. */
const anyMark: StageMark = { set: 0, unknown: 0xffffffff };

/** Priorities at which the kernel translates destinations and sources, and at which IPVS takes packets. */
const destinationNAT = -100;
const sourceNAT = 100;
const ipvsOutput = -98;
const ipvsInput = 98;

/** An endpoint, or where a packet goes that the proxy leaves alone. */
interface Place {
  readonly ip: string;
  readonly port: number;
}

/** The hooks that a packet passes on its way to a target; without one, where it goes by itself. */
export async function stagesOf(
  packet: Packet,
  target: Target | undefined,
  delivery: Delivery | undefined,
  facts: WayFacts,
): Promise<Stage[]> {
  const way = new Way(packet, facts);
  const to = target && placeOf(target.endpoint);
  if (!target || !to || !delivery) return way.unchanged();
  switch (delivery.kind) {
    case 'listener': {
      const at = placeOf(delivery.at) ?? { ip: packet.destination, port: packet.port };
      const arrival = await way.rewritten(at, noMark, false);
      const { family, protocol } = packet;
      const source = facts.isLocal(to.ip) ? to.ip : facts.nodeIP || to.ip;
      const onward: Packet = { family, protocol, source, destination: to.ip, port: to.port, origin: 'node' };
      return [...arrival, ...(await new Way(onward, facts).unchanged())];
    }
    case 'rewritten':
      return way.rewritten(to, markOf(target, delivery.mark, packet), target.masquerade);
    case 'virtual server':
      return way.throughVirtualServer(to, markOf(target, delivery.mark, packet), target.masquerade);
  }
}

/** A pod that is sent back to itself may be masqueraded without a mark. */
function markOf({ masquerade, endpoint }: Target, mark: number, { source }: Packet): StageMark {
  if (!masquerade) return noMark;
  return placeOf(endpoint)?.ip === source ? { set: 0, unknown: mark } : { set: mark, unknown: 0 };
}

function placeOf(endpoint: string): Place | undefined {
  const place = splitIPPort(endpoint);
  return place && { ip: formatIP(place.ip), port: place.port };
}

class Way {
  readonly #packet: Packet;
  readonly #facts: WayFacts;
  readonly #isOwn: boolean;
  readonly #input: string | undefined;

  constructor(packet: Packet, facts: WayFacts) {
    this.#packet = packet;
    this.#facts = facts;
    this.#isOwn = packet.origin === 'node';
    this.#input = packet.origin === 'node' ? undefined : packet.origin.interface;
  }

  async unchanged(): Promise<Stage[]> {
    const to = this.#destination;
    return [
      await this.#first(to, false),
      ...(await this.#rest(to, { isRewritten: false, masquerade: false })),
    ];
  }

  async rewritten(to: Place, mark: StageMark, masquerade: boolean): Promise<Stage[]> {
    const before = this.#destination;
    const isRewritten = to.ip !== before.ip || to.port !== before.port;
    const first = await this.#first(before, false);
    const view = { ...first.view, ...this.#target(to), isRewritten };
    const change = { priority: destinationNAT, view, mark };
    return [{ ...first, change }, ...(await this.#rest(to, { isRewritten, masquerade }))];
  }

  /**
   * IPVS takes a packet that arrives at input and one of the node at output, and sends it as if the node did. Conntrack
   * does not report the destination as rewritten.
   */
  async throughVirtualServer(to: Place, mark: StageMark, masquerade: boolean): Promise<Stage[]> {
    const before = this.#destination;
    const first = await this.#first(before, false);
    const marked = { ...first, change: { priority: destinationNAT, view: first.view, mark } };
    const final = { isRewritten: false, masquerade };
    const sent: Stage = { hook: 'output', view: await this.#output(to, false), isTracked: true };
    if (this.#isOwn) return [{ ...marked, until: ipvsOutput }, sent, ...(await this.#rest(to, final))];
    const input = this.#view(before, { input: this.#input, isRewritten: false });
    if (this.#facts.isLocal(to.ip)) {
      const view = this.#view(to, { input: this.#input, isRewritten: false });
      return [marked, { hook: 'input', view: input, change: { priority: ipvsInput, view, mark: noMark } }];
    }
    return [
      marked,
      { hook: 'input', view: input, until: ipvsInput },
      sent,
      await this.#postrouting(to, final),
    ];
  }

  /** The hook at which the packet enters. */
  async #first(to: Place, isRewritten: boolean): Promise<Stage> {
    if (this.#isOwn) return { hook: 'output', view: await this.#output(to, isRewritten) };
    return { hook: 'prerouting', view: this.#view(to, { input: this.#input, isRewritten }) };
  }

  /** The hooks after the routing decision. */
  async #rest(to: Place, final: { isRewritten: boolean; masquerade: boolean }): Promise<Stage[]> {
    const { isRewritten } = final;
    const isHere = this.#facts.isLocal(to.ip);
    if (isHere && this.#isOwn) {
      const looped = this.#view(to, { input: 'lo', isRewritten });
      return [
        { hook: 'postrouting', view: this.#view(to, { output: 'lo', isRewritten }) },
        { hook: 'prerouting', view: looped, isTracked: true },
        { hook: 'input', view: looped },
      ];
    }
    if (isHere) return [{ hook: 'input', view: this.#view(to, { input: this.#input, isRewritten }) }];
    const postrouting = await this.#postrouting(to, final);
    if (this.#isOwn) return [postrouting];
    const output = await this.#facts.interfaceTowards(to.ip);
    const view = this.#view(to, { input: this.#input, output, isRewritten });
    return [{ hook: 'forward', view }, postrouting];
  }

  /** The source of a masqueraded packet is one of the node's addresses, and which one is not known. */
  async #postrouting(to: Place, final: { isRewritten: boolean; masquerade: boolean }): Promise<Stage> {
    const output = await this.#facts.interfaceTowards(to.ip);
    const view = this.#view(to, { output, isRewritten: final.isRewritten });
    if (!final.masquerade) return { hook: 'postrouting', view };
    const change = { priority: sourceNAT, view: { ...view, source: undefined }, mark: anyMark };
    return { hook: 'postrouting', view, change };
  }

  async #output(to: Place, isRewritten: boolean): Promise<PacketView> {
    return this.#view(to, { output: await this.#facts.interfaceTowards(to.ip), isRewritten });
  }

  #view(
    to: Place,
    parts: Partial<Pick<PacketView, 'input' | 'output'>> & { isRewritten: boolean },
  ): PacketView {
    const { protocol, source } = this.#packet;
    return {
      protocol: protocolNumbers[protocol],
      source: toIP(source).bytes,
      input: undefined,
      output: undefined,
      ...this.#target(to),
      ...parts,
    };
  }

  #target({ ip, port }: Place): Pick<PacketView, 'destination' | 'port'> {
    return { destination: toIP(ip).bytes, port };
  }

  get #destination(): Place {
    return { ip: this.#packet.destination, port: this.#packet.port };
  }
}
