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

/** After the connection is known to be new, before its destination is rewritten. */
const PRIORITY = -150;
const CT_STATE_NEW = 8;
const ROUTE_LOCAL = 2;
/** The longest IPv4 header and the ports. */
const loggedBytes = 64;
/** Elements in one transaction. */
const elementsAtOnce = 2_000;

/**
 * A table whose rules log the first packets to destinations that refuse some clients. The kernel tells about connections
 * only when they get through, so these would not be noticed. The table belongs to the socket of the client, and goes
 * with it.
 */
export class RefusalTable {
  readonly #nft: NftClient;
  readonly #family: Family;
  readonly #table: TableRef;
  readonly #written = new Map<string, readonly Destination[]>();

  constructor(nft: NftClient, family: Family, tablePrefix: string) {
    this.#nft = nft;
    this.#family = family;
    this.#table = {
      family: family === 'IPv4' ? 'ip' : 'ip6',
      name: `${tablePrefix}${process.pid}`,
    };
  }

  /** Adds the table, without destinations. Rejects with NftError when the kernel refuses it. */
  async create(group: number): Promise<void> {
    const batch = new NftBatch().add('table', { ...this.#table, isOwned: true });
    const [addresses, nodePorts] = this.#sets();
    batch.add('set', addresses).add('set', nodePorts);
    for (const hook of ['prerouting', 'output'] as const) {
      const chain: Chain = {
        table: this.#table,
        name: hook,
        base: { type: 'filter', hook, priority: PRIORITY },
      };
      const log = logToGroup(group, loggedBytes);
      batch.add('chain', chain);
      batch.add('rule', { chain, exprs: acceptUnlessNew });
      batch.add('rule', { chain, exprs: [...toAddress(this.#family), inSet(addresses), log] });
      batch.add('rule', { chain, exprs: [...protocolAndPort(0), inSet(nodePorts), ...isToNode, log] });
    }
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
    // Another service port may have taken over a destination.
    const kept = new Set([...this.#written.values()].flat().map(({ name }) => name));
    await this.#write(
      'delete',
      removed.filter(({ name }) => !kept.has(name)),
    );
    await this.#write('add', added);
  }

  async #write(verb: 'add' | 'delete', destinations: readonly Destination[]): Promise<void> {
    const sets = this.#sets();
    for (let from = 0; from < destinations.length; from += elementsAtOnce) {
      const some = destinations.slice(from, from + elementsAtOnce);
      const batch = new NftBatch();
      for (const [i, set] of sets.entries()) {
        const elements = some
          .filter(({ isNodePort }) => isNodePort === (i === 1))
          .map(({ element }) => element);
        if (elements.length === 0) continue;
        if (verb === 'add') batch.addElements(set, elements);
        else batch.deleteElements(set, elements);
      }
      await this.#nft.commit(batch);
    }
  }

  #sets(): readonly [NftSet, NftSet] {
    const address = this.#family === 'IPv4' ? types.ipv4Addr : types.ipv6Addr;
    const rest = [types.inetProto, types.inetService];
    return [
      { table: this.#table, name: 'destinations', key: [address, ...rest] },
      { table: this.#table, name: 'node-ports', key: rest },
    ];
  }
}

interface Destination {
  readonly name: string;
  readonly isNodePort: boolean;
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
  return { name, isNodePort, element: { key } };
}

/** Most packets are not the first of a connection, and see only this rule. */
const acceptUnlessNew: readonly Expr[] = [
  { kind: 'ct', key: 'state', dreg: 0 },
  { kind: 'cmp', op: 'neq', sreg: 0, value: word(CT_STATE_NEW) },
  { kind: 'verdict', verdict: { kind: 'accept' } },
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

function inSet({ name }: NftSet): Expr {
  return { kind: 'lookup', set: name, sreg: 0 };
}
