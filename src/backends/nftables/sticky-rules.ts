import type { Expr } from '../../kernel/nft/expr.ts';
import { word } from '../../kernel/nft/fields.ts';
import type { Balance } from '../../model/service-port.ts';
import { clientSeed } from '../../model/stable-table.ts';
import type { EndpointList } from '../../plan/service-plan.ts';
import type { PacketFields, RuleBody } from '../nft-fields.ts';
import { clearPriority, loadPriority, lookup, setPriority } from './expressions.ts';

/**
 * Client affinity. nft cannot look one map up with what another gave (its lister fails on such a rule), so the
 * steps hand their result on in the packet's priority, which is a number `service:member` here, and zero again
 * before the packet leaves the chain. Member numbers are never given out twice in a row, so a record dies with its
 * endpoint without anybody searching for it: no member has its number any more.
 *
 * In the key of a record the second half names the list that the client was served from: a client may have one
 * record per list, and either serves the other as long as its member is in both.
 */
const listNumber: Readonly<Record<EndpointList, number>> = { cluster: 0, local: 1 };

/** Member numbers start behind the list numbers, so that one is never taken for the other. */
export const firstMember = 2;
export const lastMember = 0xffff;

const serviceMask = 0xffff0000;

interface NumberedDraw {
  readonly list: EndpointList;
  /** Endpoints, or slots of the table that a hash chooses from. */
  readonly count: number;
  readonly affinitySeconds: number;
  readonly balance: Balance;
}

/** The number that stands for a service, or with `list` for the records and slots of one of its lists. */
export function serviceNumber(service: number, list: EndpointList = 'cluster'): number {
  return ((service << 16) | listNumber[list]) >>> 0;
}

export function memberNumber(service: number, member: number): number {
  return ((service << 16) | member) >>> 0;
}

export function numberedRules(draw: NumberedDraw, packet: PacketFields): RuleBody[] {
  const named: RuleBody[] = [
    // A frontend address hit is final and a node port is no frontend: the second, when it matches, is right.
    [...packet.nodePort(0), lookup('sticky-nodeports', 0, 0), setPriority],
    [...packet.frontend(0), lookup('sticky-services', 0, 0), setPriority],
  ];
  const toList: RuleBody = [...listKey(draw.list), setPriority];
  const members = memberRules(draw, packet);
  if (draw.affinitySeconds === 0) return [...named, toList, ...members, forward(draw, undefined, packet)];
  const other = draw.list === 'cluster' ? 'local' : 'cluster';
  const recall = (list: EndpointList): RuleBody => [
    ...listKey(list),
    packet.saddr(1),
    lookup('clients', 0, 0),
    setPriority,
  ];
  return [
    ...named,
    recall(draw.list),
    forward(draw, draw.list, packet),
    recall(other),
    forward(draw, other, packet),
    toList,
    // What is there now names an endpoint that is gone: an update would restart its timer, not replace it.
    [loadPriority(0), packet.saddr(1), loadPriority(1 + packet.addressWords), record('delete', packet)],
    ...members,
    forward(draw, draw.list, packet),
    // No room for another record: forwarded all the same.
    forward(draw, undefined, packet),
  ];
}

/** Replaces the list in the priority by one of its members. */
function memberRules({ balance, count }: NumberedDraw, packet: PacketFields): RuleBody[] {
  const random = (modulus: number): RuleBody => [{ kind: 'numgen', type: 'random', modulus, dreg: 1 }];
  const memberIn = (slot: RuleBody): RuleBody => [
    loadPriority(0),
    ...slot,
    lookup('sticky-slots', 0, 0),
    setPriority,
  ];
  if (balance !== 'default') return [memberIn(hashedSlot(balance, count, packet))];
  // As without affinity: slot 0 for a packet that met a commit. A member number is no key of this map.
  return [memberIn(random(count)), ...(count > 1 ? [memberIn(random(1))] : [])];
}

/** A slot in register 1, by the address of the client and, unless `hash-client`, its port. */
function hashedSlot(balance: Balance, modulus: number, packet: PacketFields): RuleBody {
  const sreg = 2;
  const port = packet.sport(sreg + packet.addressWords);
  const words = packet.addressWords + (balance === 'hash' ? 1 : 0);
  return [
    packet.saddr(sreg),
    ...(balance === 'hash' ? [port] : []),
    { kind: 'hash', type: 'jenkins', sreg, length: words * 4, modulus, seed: clientSeed, dreg: 1 },
  ];
}

/** Sends the packet to the member in its priority, if that is in the list, and records or renews the choice. */
function forward(draw: NumberedDraw, recordFor: EndpointList | undefined, packet: PacketFields): RuleBody {
  const target = packet.addressWords + 2;
  const remember = recordFor
    ? [
        ...listKey(recordFor),
        packet.saddr(1),
        loadPriority(1 + packet.addressWords),
        record('update', packet, draw.affinitySeconds),
      ]
    : [];
  return [
    loadPriority(0),
    lookup(draw.list === 'cluster' ? 'sticky-members' : 'sticky-local-members', 0, target),
    ...remember,
    ...clearPriority,
    packet.dnat(target),
  ];
}

/** The key of the client's record: key in registers 0 and on, member behind it. */
function record(op: 'update' | 'delete', packet: PacketFields, seconds = 0): Expr {
  const data = 1 + packet.addressWords;
  const base = { kind: 'dynset', op, set: 'clients', key: 0, data } as const;
  return seconds > 0 ? { ...base, timeoutMs: seconds * 1000 } : base;
}

/** The service of the packet's priority with the number of a list, in register 0. */
function listKey(list: EndpointList): RuleBody {
  const xor = word(listNumber[list]);
  return [loadPriority(0), { kind: 'bitwise', sreg: 0, dreg: 0, mask: word(serviceMask), xor }];
}
