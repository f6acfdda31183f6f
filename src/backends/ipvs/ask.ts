import type { RulePacket } from '../../kernel/iptables/rule-match.ts';
import { RuleWalk } from '../../kernel/iptables/rule-walk.ts';
import type { SavedTable } from '../../kernel/iptables/saved-table.ts';
import {
  formatRealServer,
  formatVirtualServer,
  type RealServer,
  type VirtualServer,
  virtualServerFlags,
} from '../../kernel/ipvs/objects.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatIP, type IP, isLoopback, parseIP } from '../../model/ip.ts';
import { fateOf, type Outcome } from '../fate.ts';
import type { KernelAnswer, Packet } from '../inspection.ts';
import { rulePacket } from '../rule-packet.ts';
import { jumps } from './chains.ts';
import type { Table } from './kernel.ts';
import { realServerText, serverText } from './server-text.ts';
import type { SetLookup } from './set-lookup.ts';

/** What the answer is read from. */
export interface AskedNode {
  readonly tables: Readonly<Record<Table, SavedTable>>;
  readonly sets: SetLookup;
  /** On `kube-ipvs0`. */
  readonly bound: ReadonlySet<string>;
  /** On other interfaces. */
  readonly addresses: ReadonlySet<string>;
  /** The virtual server at the packet's destination. */
  readonly server: VirtualServer | undefined;
  readonly reals: readonly RealServer[];
  /** Packets that come in by this interface are bridged, and pass the tables. */
  isBridged(name: string): boolean;
  readonly clock: Clock;
}

const entries: ReadonlySet<string> = new Set(jumps.map(({ to }) => to));

/** What rules and IPVS do with a packet. Throws RuleNotUnderstoodError when the rules cannot be followed. */
export async function ask(packet: Packet, node: AskedNode): Promise<KernelAnswer> {
  const path = new PacketPath(packet, node);
  const outcomes = await path.outcomes();
  const { server } = node;
  const isPersistent = server !== undefined && (server.flags & virtualServerFlags.persistent) !== 0;
  const { fate, notes } = fateOf(outcomes, isPersistent ? server.timeout : 0);
  return { fate, evidence: [...path.walk.evidence, ...notes] };
}

/**
 * One packet's way. It is marked in nat; what comes in is filtered, and IPVS sees it when the destination is an address of
 * this node; what the node sends IPVS sees at once. What IPVS forwards goes out like something the node sends.
 */
class PacketPath {
  readonly walk: RuleWalk;
  readonly #node: AskedNode;
  readonly #packet: RulePacket;
  readonly #isOwn: boolean;

  constructor(packet: Packet, node: AskedNode) {
    this.#node = node;
    this.#packet = rulePacket(packet);
    this.#isOwn = packet.origin === 'node';
    const facts = {
      isLocal: (address: IP) => this.#isLocal(address),
      isBridged: ({ interface: name }: RulePacket) => name !== undefined && node.isBridged(name),
      isInSet: (set: string, dimensions: readonly string[], asked: RulePacket) =>
        this.#isInSet(set, dimensions, asked),
    };
    this.walk = new RuleWalk(facts, entries, node.clock);
  }

  async outcomes(): Promise<Outcome[]> {
    const { nat } = this.#node.tables;
    const outcomes: Outcome[] = [];
    for (const end of await this.walk.enter(nat, this.#isOwn ? 'OUTPUT' : 'PREROUTING', this.#packet)) {
      for (const outcome of await this.#marked({ ...this.#packet, mark: end.mark })) {
        outcomes.push({ ...outcome, probability: outcome.probability * end.probability });
      }
    }
    return outcomes;
  }

  async #marked(packet: RulePacket): Promise<Outcome[]> {
    const isForNode = this.#isLocal(packet.destination);
    const { server } = this.#node;
    if (this.#isOwn) return server ? this.#forward(packet, server) : this.#pass(packet, isForNode);
    const refusal = await this.#refusal(packet, [isForNode ? 'INPUT' : 'FORWARD']);
    if (refusal) return [refusal];
    if (isForNode && server) return this.#forward(packet, server);
    if (server) this.walk.note(`# no address of this node, so that its virtual server sees no packets`);
    return [{ probability: 1, action: 'pass' }];
  }

  async #pass(packet: RulePacket, isForNode: boolean): Promise<Outcome[]> {
    const refusal = await this.#refusal(packet, isForNode ? ['OUTPUT', 'INPUT'] : ['OUTPUT']);
    return [refusal ?? { probability: 1, action: 'pass' }];
  }

  async #forward(packet: RulePacket, server: VirtualServer): Promise<Outcome[]> {
    const address = formatIP(packet.destination);
    if (this.#node.bound.has(address)) this.walk.note(`# ${address} is on kube-ipvs0`);
    this.walk.note(serverText(server));
    const choices = choicesOf(server, this.#node.reals);
    if (choices.length === 0) {
      this.walk.note('# a virtual server without real servers rejects');
      return [{ probability: 1, action: 'reject' }];
    }
    if (!isEven(server)) {
      this.walk.note(`# which, is up to the scheduler ${server.scheduler}; probabilities are by weight`);
    }
    const outcomes: Outcome[] = [];
    for (const { real, probability } of choices) {
      this.walk.note(realServerText(server, real));
      outcomes.push({ ...(await this.#sent(packet, server, real)), probability });
    }
    return outcomes;
  }

  /** What becomes of a packet that IPVS has given a new destination. */
  async #sent(packet: RulePacket, server: VirtualServer, real: RealServer): Promise<Outcome> {
    const destination = parseIP(real.address) ?? packet.destination;
    const virtualServer = formatVirtualServer(server);
    const sent = { ...packet, destination, port: real.port, isRewritten: true, virtualServer };
    const forward = { probability: 1, action: 'forward', endpoint: formatRealServer(real) } as const;
    const isForNode = this.#isLocal(destination);
    if (isForNode && !this.#isOwn) {
      if (packet.mark !== 0)
        this.walk.note('# delivered on this node, which masquerades only what leaves it');
      return { ...forward, masquerade: false };
    }
    const refusal = await this.#refusal(sent, isForNode ? ['OUTPUT', 'INPUT'] : ['OUTPUT']);
    if (refusal) return refusal;
    const ends = await this.walk.enter(this.#node.tables.nat, 'POSTROUTING', sent);
    return { ...forward, masquerade: ends.some(({ verdict }) => verdict === 'masquerade') };
  }

  async #refusal(packet: RulePacket, hooks: readonly string[]): Promise<Outcome | undefined> {
    for (const hook of hooks) {
      const ends = await this.walk.enter(this.#node.tables.filter, hook, packet);
      for (const { verdict } of ends) {
        if (verdict === 'drop' || verdict === 'reject') return { probability: 1, action: verdict };
      }
    }
    return undefined;
  }

  #isInSet(set: string, dimensions: readonly string[], packet: RulePacket): boolean | undefined {
    const entry = this.#node.sets.find(set, dimensions, packet);
    if (entry === undefined) return undefined;
    if (entry !== '') this.walk.note(`add ${set} ${entry}`);
    return entry !== '';
  }

  #isLocal(address: IP): boolean {
    const text = formatIP(address);
    return isLoopback(address) || this.#node.bound.has(text) || this.#node.addresses.has(text);
  }
}

/** Takes turns, whatever the weights, as long as they are not 0. */
function isRoundRobin({ scheduler }: VirtualServer): boolean {
  return scheduler === 'rr';
}

/** What is chosen says nothing about what is chosen next. */
function isEven(server: VirtualServer): boolean {
  return isRoundRobin(server) || server.scheduler === 'wrr';
}

function choicesOf(server: VirtualServer, reals: readonly RealServer[]) {
  const usable = reals.filter(({ weight }) => weight > 0);
  const shareOf = ({ weight }: RealServer) => (isRoundRobin(server) ? 1 : weight);
  const total = usable.reduce((sum, real) => sum + shareOf(real), 0);
  return usable.map((real) => ({ real, probability: shareOf(real) / total }));
}
