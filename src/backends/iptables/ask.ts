import { RuleNotUnderstoodError, type RulePacket } from '../../kernel/iptables/rule-match.ts';
import type { TableEnd } from '../../kernel/iptables/rule-walk.ts';
import { splitIPPort } from '../../model/ip.ts';
import type { PossibleFate } from '../fate.ts';
import type { FollowedPacket, Packet } from '../inspection.ts';
import { type RuleNode, RulePath } from '../rule-path.ts';
import { jumps } from './jumps.ts';

const entries: ReadonlySet<string> = new Set(jumps.map(({ to }) => to));

/**
 * What our rules in these tables do with a packet: its destination is rewritten first, then it is filtered where that
 * leads, then masqueraded. Throws RuleNotUnderstoodError when they cannot be followed.
 */
export async function ask(packet: Packet, node: RuleNode): Promise<FollowedPacket> {
  const path = new RulePath(packet, node, entries, { isBridged: () => false });
  return path.answer((end) => outcomesOf(end, path));
}

/** Follows the packet once its destination is final. */
async function outcomesOf(end: TableEnd, path: RulePath): Promise<PossibleFate[]> {
  if (end.verdict === 'drop' || end.verdict === 'reject') return [{ probability: 1, action: end.verdict }];
  const packet = rewritten(end, path);
  const refusal = await path.refusal(packet);
  if (refusal) return [refusal];
  if (end.to === undefined) return [{ probability: 1, action: 'pass' }];
  const masquerade = await path.isMasqueraded(packet);
  return [{ probability: 1, action: 'forward', endpoint: end.to, masquerade }];
}

function rewritten({ to, mark }: TableEnd, { packet, walk }: RulePath): RulePacket {
  if (to === undefined) return { ...packet, mark };
  const address = splitIPPort(to);
  if (!address) throw new RuleNotUnderstoodError(`destination ${to}`, walk.evidence);
  return { ...packet, mark, destination: address.ip, port: address.port, isRewritten: true };
}
