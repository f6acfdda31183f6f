import { NftBatch } from '../kernel/nft/batch.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import type { Expr } from '../kernel/nft/expr.ts';
import { types, word } from '../kernel/nft/fields.ts';
import { logToGroup } from '../kernel/nft/log.ts';
import type { Chain, Element, NftSet, TableRef } from '../kernel/nft/objects.ts';
import { protocolNumbers } from '../kernel/numbers.ts';
import { addressKeyFrom, keyBytes } from '../model/address-key.ts';
import type { Family } from '../model/ip.ts';
import { distinctFrontends, type Frontend } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import { isFromLoopback, ownTable } from './watching-rules.ts';

/** After the connection is known to be new, before its destination is rewritten. */
const PRIORITY = -150;
const CT_STATE_NEW = 8;
const ROUTE_LOCAL = 2;
/** The longest IPv4 header and the ports. */
const loggedBytes = 64;
/** Elements in one transaction. */
const elementsAtOnce = 2_000;

/** The sets in which a first packet is looked up. */
const sides = ['addresses', 'nodePorts'] as const;
type Side = (typeof sides)[number];

/**
 * A table whose rules log the first packets to destinations that refuse some clients. The kernel tells about connections
 * only when they get through, so these would not be noticed. The table belongs to the socket of the client, and goes
 * with it. Packets see its chains only while there are such destinations.
 */
export class RefusalTable {
  readonly #nft: NftClient;
  readonly #family: Family;
  readonly #table: TableRef;
  readonly #sets: Readonly<Record<Side, NftSet>>;
  readonly #written = new Map<string, readonly Destination[]>();
  #group = 0;
  /** The sets that have elements, and a rule. */
  #lookedUp: readonly Side[] = [];

  constructor(nft: NftClient, family: Family, tablePrefix: string) {
    this.#nft = nft;
    this.#family = family;
    this.#table = ownTable(family, tablePrefix);
    const address = family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr;
    const rest = [types.inetProto, types.inetService];
    this.#sets = {
      addresses: { table: this.#table, name: 'refusing', key: [address, ...rest] },
      nodePorts: { table: this.#table, name: 'refusing-node-ports', key: rest },
    };
  }

  /** Adds the table, without destinations. Rejects with NftError when the kernel refuses it. */
  async create(group: number): Promise<void> {
    this.#group = group;
    const batch = new NftBatch().add('table', { ...this.#table, isOwned: true });
    for (const side of sides) batch.add('set', this.#sets[side]);
    await this.#nft.commit(batch);
  }

  /** Has the first packets to these service ports logged, as far as they may be refused. A missing plan is removed. */
  async update(plans: Iterable<readonly [key: string, plan: ServicePlan | undefined]>): Promise<void> {
    const added: Destination[] = [];
    const removed: Destination[] = [];
    for (const [key, plan] of plans) {
      const before = this.#written.get(key) ?? [];
      const after = plan ? refusing(plan) : [];
      if (before.length === 0 && after.length === 0) continue;
      added.push(...after.filter(({ name }) => !before.some((known) => known.name === name)));
      removed.push(...before.filter(({ name }) => !after.some((wanted) => wanted.name === name)));
      if (after.length > 0) this.#written.set(key, after);
      else this.#written.delete(key);
    }
    if (added.length === 0 && removed.length === 0) return;
    // Another service port may have taken over a destination.
    const kept = new Map([...this.#written.values()].flat().map(({ name, side }) => [name, side]));
    await this.#write(
      'delete',
      removed.filter(({ name }) => !kept.has(name)),
    );
    await this.#write('add', added);
    await this.#lookUpIn(new Set(kept.values()));
  }

  async #write(verb: 'add' | 'delete', destinations: readonly Destination[]): Promise<void> {
    for (let from = 0; from < destinations.length; from += elementsAtOnce) {
      const some = Map.groupBy(destinations.slice(from, from + elementsAtOnce), ({ side }) => side);
      const batch = new NftBatch();
      for (const [side, found] of some) {
        const elements = found.map(({ element }) => element);
        if (verb === 'add') batch.addElements(this.#sets[side], elements);
        else batch.deleteElements(this.#sets[side], elements);
      }
      await this.#nft.commit(batch);
    }
  }

  /** Has first packets looked up in these sets, which have elements, and in no other. */
  async #lookUpIn(used: ReadonlySet<Side>): Promise<void> {
    const lookedUp = sides.filter((side) => used.has(side));
    if (lookedUp.join() === this.#lookedUp.join()) return;
    const batch = new NftBatch();
    for (const hook of ['prerouting', 'output'] as const) {
      const chain: Chain = {
        table: this.#table,
        name: hook,
        base: { type: 'filter', hook, priority: PRIORITY },
      };
      if (this.#lookedUp.length > 0) batch.flush('chain', chain).delete('chain', chain);
      if (lookedUp.length > 0) this.#addChain(batch, chain, lookedUp);
    }
    await this.#nft.commit(batch);
    this.#lookedUp = lookedUp;
  }

  #addChain(batch: NftBatch, chain: Chain, lookedUp: readonly Side[]): void {
    batch.add('chain', chain);
    batch.add('rule', { chain, exprs: [...isNotNew, accept] });
    const hasBeenLookedUp = isFromLoopback('eq');
    if (chain.name === 'prerouting') batch.add('rule', { chain, exprs: [...hasBeenLookedUp, accept] });
    const log = logToGroup(this.#group, loggedBytes);
    for (const side of lookedUp) batch.add('rule', { chain, exprs: [...this.#isIn(side), log] });
  }

  #isIn(side: Side): Expr[] {
    const lookup: Expr = { kind: 'lookup', set: this.#sets[side].name, sreg: 0 };
    if (side === 'addresses') return [...toAddress(this.#family), lookup];
    return [...protocolAndPort(0), lookup, ...isToNode];
  }
}

interface Destination {
  readonly name: string;
  readonly side: Side;
  readonly element: Element;
}

function refusing(plan: ServicePlan): Destination[] {
  return distinctFrontends(plan).filter(mayRefuse).map(destinationOf);
}

function mayRefuse({ outside, near, sourceRanges }: Frontend): boolean {
  return (
    outside.action !== 'forward' ||
    (near !== undefined && near.action !== 'forward') ||
    sourceRanges.length > 0
  );
}

function destinationOf({ name, kind, address, port, protocol }: Frontend): Destination {
  const isNodePort = kind === 'node port';
  const start = isNodePort ? new Uint8Array(0) : keyBytes(addressKeyFrom(address) ?? 0);
  const key = Uint8Array.of(...start, protocolNumbers[protocol], 0, 0, 0, port >> 8, port & 0xff, 0, 0);
  return { name, side: isNodePort ? 'nodePorts' : 'addresses', element: { key } };
}

const accept: Expr = { kind: 'verdict', verdict: { kind: 'accept' } };

/** Most packets are not the first of a connection, and see only the rule with this test. */
const isNotNew: readonly Expr[] = [
  { kind: 'ct', key: 'state', dreg: 0 },
  { kind: 'cmp', op: 'neq', sreg: 0, value: word(CT_STATE_NEW) },
];

/** Loads address, protocol and port. */
function toAddress(family: Family): Expr[] {
  const isIPv4 = family === 'IPv4';
  const length = isIPv4 ? 4 : 16;
  return [
    { kind: 'payload', base: 'network', offset: isIPv4 ? 16 : 24, length, dreg: 0 },
    ...protocolAndPort(length / 4),
  ];
}

const isToNode: readonly Expr[] = [
  { kind: 'fib', flags: ['daddr'], result: 'type', dreg: 0 },
  { kind: 'cmp', op: 'eq', sreg: 0, value: word(ROUTE_LOCAL) },
];

function protocolAndPort(dreg: number): Expr[] {
  return [
    { kind: 'meta', key: 'l4proto', dreg },
    { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg: dreg + 1 },
  ];
}
