import type { MatchFacts, RulePacket } from '../kernel/iptables/rule-match.ts';
import { RuleWalk, type TableEnd } from '../kernel/iptables/rule-walk.ts';
import type { SavedTable } from '../kernel/iptables/saved-table.ts';
import type { RecentClients } from '../kernel/xtables/recent-clients.ts';
import type { Clock } from '../lib/clock.ts';
import { formatIP, type IP, isLoopback, toIP } from '../model/ip.ts';
import { fateOf, type PossibleFate } from './fate.ts';
import { boundTo, type FollowedPacket, type Packet } from './inspection.ts';

/** The tables and addresses that a packet meets. */
export interface RuleNode {
  readonly tables: Readonly<Record<'nat' | 'filter', SavedTable>>;
  /** Canonical addresses of the node. */
  readonly addresses: ReadonlySet<string>;
  readonly clock: Clock;
  readonly recent?: RecentClients;
}

/** One packet's way through the tables of iptables; what happens between them is up to the mode. */
export class RulePath {
  readonly walk: RuleWalk;
  /** As it is before any rule did anything. */
  readonly packet: RulePacket;
  /** The node itself sends it. */
  readonly isOwn: boolean;
  readonly #node: RuleNode;

  /** Only rules that jump to one of `entries` are followed. Throws RangeError when an address of the packet is none. */
  constructor(
    packet: Packet,
    node: RuleNode,
    entries: ReadonlySet<string>,
    facts: Omit<MatchFacts, 'isLocal'>,
  ) {
    const { family, protocol, source, destination, port, origin } = packet;
    this.isOwn = origin === 'node';
    this.packet = {
      family,
      protocol,
      source: toIP(source),
      destination: toIP(destination),
      port,
      interface: origin === 'node' ? undefined : origin.interface,
      mark: 0,
      isRewritten: false,
    };
    this.#node = node;
    const isLocal = (address: IP) => this.isLocal(address);
    const secondsSinceSeen = (list: string, address: IP) => node.recent?.secondsSince(list, address);
    this.walk = new RuleWalk({ secondsSinceSeen, ...facts, isLocal }, entries, node.clock);
  }

  /** Follows the packet through nat, which may rewrite its destination or mark it; `after` continues from there. */
  async answer(
    after: (end: TableEnd) => Promise<PossibleFate[]>,
    persistence?: { readonly affinitySeconds: number; readonly secondsLeft: number | undefined },
  ): Promise<FollowedPacket> {
    const hook = this.isOwn ? 'OUTPUT' : 'PREROUTING';
    const outcomes: PossibleFate[] = [];
    for (const end of await this.walk.enter(this.#node.tables.nat, hook, this.packet)) {
      for (const outcome of await after(end)) {
        outcomes.push({ ...outcome, probability: outcome.probability * end.probability });
      }
    }
    const { affinitySeconds, secondsLeft } = persistence ?? this.walk;
    const { fate, notes } = fateOf(outcomes, affinitySeconds);
    return { fate, evidence: [...this.walk.evidence, ...notes], ...boundTo(fate, secondsLeft) };
  }

  /**
   * Follows the packet through the filter chains on its way. A packet from the node to itself passes OUTPUT and
   * INPUT.
   */
  async refusal(packet: RulePacket, isSent = this.isOwn): Promise<PossibleFate | undefined> {
    const isForNode = this.isLocal(packet.destination);
    const sending = isForNode ? ['OUTPUT', 'INPUT'] : ['OUTPUT'];
    for (const hook of isSent ? sending : [isForNode ? 'INPUT' : 'FORWARD']) {
      // Over loopback it comes in by an interface that no detector of pods knows.
      const ends = await this.walk.enter(this.#node.tables.filter, hook, packet);
      for (const { verdict } of ends) {
        if (verdict === 'drop' || verdict === 'reject') return { probability: 1, action: verdict };
      }
    }
    return undefined;
  }

  /** Once its destination is the last one. */
  async isMasqueraded(packet: RulePacket): Promise<boolean> {
    if (this.isDelivered(packet)) {
      if (packet.mark !== 0)
        this.walk.note('# delivered on this node, which masquerades only what leaves it');
      return false;
    }
    const ends = await this.walk.enter(this.#node.tables.nat, 'POSTROUTING', packet);
    return ends.some(({ verdict }) => verdict === 'masquerade');
  }

  /** It came in from elsewhere and does not go out. */
  isDelivered({ destination }: RulePacket): boolean {
    return !this.isOwn && this.isLocal(destination);
  }

  isLocal(address: IP): boolean {
    return isLoopback(address) || this.#node.addresses.has(formatIP(address));
  }
}
