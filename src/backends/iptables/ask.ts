import { RuleNotUnderstoodError, type RulePacket } from '../../kernel/iptables/rule-match.ts';
import { RuleWalk, type TableEnd } from '../../kernel/iptables/rule-walk.ts';
import type { SavedTable } from '../../kernel/iptables/saved-table.ts';
import type { Clock } from '../../lib/clock.ts';
import { formatIP, type IP, isLoopback, parseIP } from '../../model/ip.ts';
import { fateOf, type Outcome } from '../fate.ts';
import type { KernelAnswer, Packet } from '../inspection.ts';
import { rulePacket } from '../rule-packet.ts';
import { jumps } from './jumps.ts';
import type { TableName } from './tables.ts';

/** What the answer is read from. */
export interface AskedNode {
  readonly tables: Readonly<Record<TableName, SavedTable>>;
  /** Canonical addresses on the node's interfaces. */
  readonly addresses: ReadonlySet<string>;
  readonly clock: Clock;
}

const entries: ReadonlySet<string> = new Set(jumps.map(({ to }) => to));

/** What our rules in these tables do with a packet. Throws RuleNotUnderstoodError when they cannot be followed. */
export async function ask(packet: Packet, node: AskedNode): Promise<KernelAnswer> {
  const path = new PacketPath(packet, node);
  const { fate, notes } = fateOf(await path.outcomes(), path.walk.affinitySeconds);
  return { fate, evidence: [...path.walk.evidence, ...notes] };
}

/** One packet's way: its destination is rewritten first, then it is filtered where that leads, then masqueraded. */
class PacketPath {
  readonly walk: RuleWalk;
  readonly #node: AskedNode;
  readonly #packet: RulePacket;
  readonly #isOwn: boolean;

  constructor(packet: Packet, node: AskedNode) {
    this.#node = node;
    this.#packet = rulePacket(packet);
    this.#isOwn = packet.origin === 'node';
    const isLocal = (address: IP) => this.#isLocal(address);
    this.walk = new RuleWalk({ isLocal, isBridged: () => false }, entries, node.clock);
  }

  async outcomes(): Promise<Outcome[]> {
    const { nat } = this.#node.tables;
    const ends = await this.walk.enter(nat, this.#isOwn ? 'OUTPUT' : 'PREROUTING', this.#packet);
    const outcomes: Outcome[] = [];
    for (const end of ends) {
      for (const outcome of await this.#after(end)) {
        outcomes.push({ ...outcome, probability: outcome.probability * end.probability });
      }
    }
    return outcomes;
  }

  /** What becomes of the packet once its destination is settled. */
  async #after(end: TableEnd): Promise<Outcome[]> {
    if (end.verdict === 'drop' || end.verdict === 'reject') return [{ probability: 1, action: end.verdict }];
    const packet = this.#rewritten(end);
    const refusal = await this.#refusal(packet);
    if (refusal) return [{ probability: 1, action: refusal }];
    if (end.to === undefined) return [{ probability: 1, action: 'pass' }];
    const masquerade = await this.#isMasqueraded(packet);
    return [{ probability: 1, action: 'forward', endpoint: end.to, masquerade }];
  }

  #rewritten({ to, mark }: TableEnd): RulePacket {
    if (to === undefined) return { ...this.#packet, mark };
    const colon = to.lastIndexOf(':');
    const destination = parseIP(to.slice(0, colon).replace(/^\[(.*)\]$/, '$1'));
    if (!destination) throw new RuleNotUnderstoodError(`destination ${to}`, this.walk.evidence);
    return { ...this.#packet, mark, destination, port: Number(to.slice(colon + 1)), isRewritten: true };
  }

  /** What the node sends to itself goes out and comes in. */
  async #refusal(packet: RulePacket): Promise<'drop' | 'reject' | undefined> {
    const isForNode = this.#isLocal(packet.destination);
    const hooks = this.#isOwn
      ? ['OUTPUT', ...(isForNode ? ['INPUT'] : [])]
      : [isForNode ? 'INPUT' : 'FORWARD'];
    for (const hook of hooks) {
      // Over loopback it comes in by an interface that no detector of pods knows.
      const ends = await this.walk.enter(this.#node.tables.filter, hook, packet);
      for (const { verdict } of ends) if (verdict === 'drop' || verdict === 'reject') return verdict;
    }
    return undefined;
  }

  /** What the node delivers to itself after it came in from elsewhere does not go out. */
  async #isMasqueraded(packet: RulePacket): Promise<boolean> {
    if (!this.#isOwn && this.#isLocal(packet.destination)) {
      if (packet.mark !== 0)
        this.walk.note('# delivered on this node, which masquerades only what leaves it');
      return false;
    }
    const ends = await this.walk.enter(this.#node.tables.nat, 'POSTROUTING', packet);
    return ends.some(({ verdict }) => verdict === 'masquerade');
  }

  #isLocal(address: IP): boolean {
    return isLoopback(address) || this.#node.addresses.has(formatIP(address));
  }
}
