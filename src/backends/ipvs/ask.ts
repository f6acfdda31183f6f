import type { RulePacket } from '../../kernel/iptables/rule-match.ts';
import {
  formatRealServer,
  formatVirtualServer,
  type RealServer,
  type VirtualServer,
  virtualServerFlags,
} from '../../kernel/ipvs/objects.ts';
import type { Persistence } from '../../kernel/ipvs/persistence.ts';
import { formatIP, parseIP } from '../../model/ip.ts';
import type { PossibleFate } from '../fate.ts';
import type { FollowedPacket, Packet } from '../inspection.ts';
import { type RuleNode, RulePath } from '../rule-path.ts';
import { jumps } from './chains.ts';
import { deviceName } from './kernel.ts';
import { realServerText, serverText } from './server-text.ts';
import type { SetLookup } from './set-lookup.ts';

/** The state that an answer is based on. */
export interface AskedNode extends RuleNode {
  readonly sets: SetLookup;
  /** Those of the node's addresses that are on `kube-ipvs0`. */
  readonly bound: ReadonlySet<string>;
  /** The virtual server at the packet's destination. */
  readonly server: VirtualServer | undefined;
  readonly reals: readonly RealServer[];
  /** The persistence template of the packet's client. */
  readonly persistence: Persistence | undefined;
  /** Packets that come in by this interface are bridged, and pass the tables. */
  isBridged(name: string): boolean;
}

const entries: ReadonlySet<string> = new Set(jumps.map(({ to }) => to));

/** Follows a packet through rules and IPVS. Throws RuleNotUnderstoodError at a rule whose meaning is unknown. */
export async function ask(packet: Packet, node: AskedNode): Promise<FollowedPacket> {
  return new PacketPath(packet, node).answer();
}

/**
 * One packet's way. It is marked in nat; what comes in is filtered, and IPVS sees it when the destination is an address of
 * this node; what the node sends IPVS sees at once. What IPVS forwards goes out like something the node sends.
 */
class PacketPath {
  readonly #node: AskedNode;
  readonly #path: RulePath;

  constructor(packet: Packet, node: AskedNode) {
    this.#node = node;
    this.#path = new RulePath(packet, node, entries, {
      isBridged: ({ interface: name }) => name !== undefined && node.isBridged(name),
      isInSet: (set, dimensions, asked) => this.#isInSet(set, dimensions, asked),
    });
  }

  answer(): Promise<FollowedPacket> {
    const { server, persistence } = this.#node;
    return this.#path.answer(({ mark }) => this.#marked({ ...this.#path.packet, mark }), {
      affinitySeconds: server && isPersistent(server) ? server.timeout : 0,
      secondsLeft: persistence?.secondsLeft,
    });
  }

  async #marked(packet: RulePacket): Promise<PossibleFate[]> {
    const { isOwn, walk } = this.#path;
    const { server } = this.#node;
    if (isOwn && server) return this.#forward(packet, server);
    const refusal = await this.#path.refusal(packet);
    if (refusal) return [refusal];
    if (server && this.#path.isLocal(packet.destination)) return this.#forward(packet, server);
    if (server) walk.note(`# no address of this node, so that its virtual server sees no packets`);
    return [{ probability: 1, action: 'pass' }];
  }

  async #forward(packet: RulePacket, server: VirtualServer): Promise<PossibleFate[]> {
    const { walk } = this.#path;
    const address = formatIP(packet.destination);
    if (this.#node.bound.has(address)) walk.note(`# ${address} is on ${deviceName}`);
    walk.note(serverText(server));
    const choices = this.#choices(server);
    if (choices.length === 0) {
      walk.note('# a virtual server without real servers rejects');
      return [{ probability: 1, action: 'reject' }];
    }
    if (!isEven(server) && choices.length > 1) {
      walk.note(`# which, is up to the scheduler ${server.scheduler}; probabilities are by weight`);
    }
    const outcomes: PossibleFate[] = [];
    for (const { real, probability } of choices) {
      walk.note(realServerText(server, real));
      outcomes.push({ ...(await this.#sent(packet, server, real)), probability });
    }
    return outcomes;
  }

  /** One for a client with a template; otherwise what the scheduler may choose. */
  #choices(server: VirtualServer) {
    const { reals, persistence } = this.#node;
    const bound = reals.find(
      ({ address, port }) => address === persistence?.address && port === persistence.port,
    );
    if (!bound || !persistence) return choicesOf(server, reals);
    this.#path.walk.note(`# a template binds the client for ${persistence.secondsLeft} s`);
    return [{ real: bound, probability: 1 }];
  }

  /** Follows a packet that IPVS gave a new destination. */
  async #sent(packet: RulePacket, server: VirtualServer, real: RealServer): Promise<PossibleFate> {
    const destination = parseIP(real.address) ?? packet.destination;
    const virtualServer = formatVirtualServer(server);
    const sent = { ...packet, destination, port: real.port, isRewritten: true, virtualServer };
    const refusal = this.#path.isDelivered(sent) ? undefined : await this.#path.refusal(sent, true);
    if (refusal) return refusal;
    const masquerade = await this.#path.isMasqueraded(sent);
    return { probability: 1, action: 'forward', endpoint: formatRealServer(real), masquerade };
  }

  #isInSet(set: string, dimensions: readonly string[], packet: RulePacket): boolean | undefined {
    const entry = this.#node.sets.find(set, dimensions, packet);
    if (entry === undefined) return undefined;
    if (entry !== '') this.#path.walk.note(`add ${set} ${entry}`);
    return entry !== '';
  }
}

/** It sends a client to the same real server again. */
export function isPersistent({ flags }: VirtualServer): boolean {
  return (flags & virtualServerFlags.persistent) !== 0;
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
