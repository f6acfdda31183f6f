import type { Hook } from '../../../kernel/nft/objects.ts';
import type { Packet } from '../../inspection.ts';
import type { IsOwn } from './registers.ts';
import { type Decided, RuleWalk } from './rule-walk.ts';
import { type SeenPacket, seenPacket, sentTo } from './seen-packet.ts';
import type { HeldChain, TableSnapshot } from './table-snapshot.ts';

/** Where rules let a packet go. */
export interface PacketPath {
  readonly end: 'drop' | 'reject' | 'through';
  /** Its destination at the end. */
  readonly ip: string;
  readonly port: number;
  readonly isTranslated: boolean;
  readonly evidence: readonly string[];
}

/**
 * Takes the first packet of a connection through the table as the kernel holds it, hook by hook. A packet of this node
 * to one of its own addresses comes back in by loopback; its destination is rewritten at most once.
 */
export async function pathOf(packet: Packet, table: TableSnapshot, isOwn: IsOwn): Promise<PacketPath> {
  const walk = new RuleWalk(table, isOwn);
  const first: Hook = packet.origin === 'node' ? 'output' : 'prerouting';
  let seen = seenPacket(packet);
  for (let hook: Hook | undefined = first; hook; hook = nextHook(hook, isOwn(seen.destination))) {
    if (hook !== first && first === 'output') seen = { ...seen, interface: 'lo' };
    for (const chain of chainsAt(hook, table)) {
      if (chain.base?.type === 'nat' && hook !== first) continue;
      const decided = (await walk.chain(chain.name, seen)) ?? policyOf(chain);
      if (decided.kind === 'drop' || decided.kind === 'reject') return finished(decided.kind, seen, walk);
      if (decided.kind === 'dnat') seen = sentTo(packet, decided.ip, decided.port);
    }
  }
  return finished('through', seen, walk);
}

function nextHook(hook: Hook, isForNode: boolean): Hook | undefined {
  if (hook === 'output') return isForNode ? 'prerouting' : undefined;
  if (hook === 'prerouting') return isForNode ? 'input' : 'forward';
  return undefined;
}

function chainsAt(hook: Hook, { chains }: TableSnapshot): HeldChain[] {
  return [...chains.values()]
    .filter(({ base }) => base?.hook === hook)
    .toSorted((a, b) => (a.base?.priority ?? 0) - (b.base?.priority ?? 0));
}

function policyOf({ base }: HeldChain): Decided {
  return { kind: base?.policy ?? 'accept' };
}

function finished(end: PacketPath['end'], seen: SeenPacket, { evidence }: RuleWalk): PacketPath {
  const { destination: ip, port, isTranslated } = seen;
  return { end, ip, port, isTranslated, evidence };
}
