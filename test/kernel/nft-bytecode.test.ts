import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { NftBatch } from '../../src/kernel/nft/batch.ts';
import type { NftClient } from '../../src/kernel/nft/client.ts';
import type { Expr } from '../../src/kernel/nft/expr.ts';
import { openNftClient } from '../../src/kernel/nft/netlink-client.ts';
import type { Element, NftSet, Rule } from '../../src/kernel/nft/objects.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { declaredSets } from './nft-declared-sets.ts';

/** Rules that we write equal those that nft writes, in the kernel and in nft's output. */

const table = { family: 'ip', name: 'kube-proxy' } as const;
const text = join(import.meta.dirname, '../../src/kernel/nft/testdata/ip.nft');
const sets = declaredSets().filter((set) => set.table.family === 'ip');
const anonymous = sets.find((set) => set.flags?.includes('anonymous'));

inNamespace(import.meta.url, () => {
  suite('a ruleset loaded by nft and the same ruleset written by us', () => {
    test('are equal in the kernel and in the output of nft', async () => {
      const client = openNftClient(await loadLibc(), { clock: systemClock });
      try {
        sh(`nft -f ${text}`);
        const listed = sh('nft list ruleset');
        const loaded = await snapshot(client);
        sh('nft delete table ip kube-proxy');
        await client.commit(rewrite(loaded));
        assert.deepEqual(await snapshot(client), loaded);
        assert.equal(withoutClocks(sh('nft list ruleset')), withoutClocks(listed));
        assert.ok(listed.includes('numgen random mod 65536'));
      } finally {
        client.close();
      }
    });

    test('a ruleset is removed without a trace', async () => {
      const client = openNftClient(await loadLibc(), { clock: systemClock });
      try {
        await client.commit(new NftBatch().destroy('table', table).destroy('table', table));
        assert.equal(sh('nft list ruleset'), '');
      } finally {
        client.close();
      }
    });
  });
});

interface Snapshot {
  readonly table: unknown;
  readonly chains: Awaited<ReturnType<NftClient['listChains']>>;
  readonly counters: Awaited<ReturnType<NftClient['listCounters']>>;
  readonly sets: unknown[];
  readonly elements: ReadonlyMap<string, readonly Element[]>;
  readonly rules: readonly Rule[];
}

/** Everything that the kernel lists, without handles and times. */
async function snapshot(client: NftClient): Promise<Snapshot> {
  const elements = new Map<string, Element[]>();
  const infos = await client.listSets(table);
  for (const { name } of infos) {
    const found: Element[] = [];
    await client.listElements({ table, name }, (some, restarted) => {
      if (restarted) found.length = 0;
      found.push(...some);
    });
    elements.set(name, found.map(withoutExpiry).sort(byKey));
  }
  return {
    table: (await client.getTable(table)) ?? {},
    chains: await client.listChains(table),
    counters: await client.listCounters(table),
    sets: infos,
    elements,
    rules: await client.listRules(table),
  };
}

/** The batch that writes a snapshot again. */
function rewrite(from: Snapshot): NftBatch {
  const batch = new NftBatch().add('table', { ...table, comment: 'rules for kube-proxy' });
  for (const chain of from.chains) batch.add('chain', chain);
  for (const counter of from.counters) batch.add('counter', counter);
  for (const set of sets) batch.add('set', set);
  for (const [name, elements] of from.elements) {
    batch.addElements(
      declared(name),
      name === 'aff' ? elements.map((e) => ({ ...e, expiresMs: 5000 })) : elements,
    );
  }
  for (const rule of from.rules) batch.add('rule', { ...rule, exprs: rule.exprs.map(byDeclaredName) });
  return batch;
}

function declared(kernelName: string): NftSet {
  const set = sets.find(({ name }) => name === kernelName) ?? anonymous;
  assert.ok(set);
  return set;
}

/** A batch refers to a set with an automatic name by its number. */
function byDeclaredName(expr: Expr): Expr {
  if (expr.kind !== 'lookup' || !expr.set.startsWith('__set')) return expr;
  return { ...expr, set: anonymous?.name ?? '', setId: anonymous?.id ?? 0 };
}

function withoutExpiry(element: Element): Element {
  const { expiresMs: _, ...rest } = element;
  return rest;
}

function byKey(a: Element, b: Element): number {
  return Buffer.compare(a.key, b.key) || Number(a.intervalEnd ?? false) - Number(b.intervalEnd ?? false);
}

function withoutClocks(listing: string): string {
  return listing.replaceAll(/expires \w+/g, 'expires');
}
