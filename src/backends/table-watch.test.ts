import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { FakeNft } from '../../test/nftables/fake-nft.ts';
import type { NftEvent } from '../kernel/nft/events.ts';
import { silentLogger } from '../obs/log.ts';
import type { ForeignChange } from './repairs.ts';
import { TableWatch } from './table-watch.ts';

const ours = { family: 'ip', name: 'kube-proxy' } as const;

function watch() {
  const nft = new FakeNft();
  const clock = new FakeClock();
  const changes: ForeignChange[] = [];
  const tableWatch = new TableWatch({
    client: nft,
    table: ours,
    unwatched: 'clients',
    clock,
    logger: silentLogger,
    onChange: (change) => changes.push(change),
  });
  return { nft, clock, changes, tableWatch };
}

const origin = { portId: 77 };
const generation: NftEvent = { ...origin, type: 'generation', id: 5, pid: 42, processName: 'nft' };
const inSet = (name: string, table: { family: 'ip' | 'ip6'; name: string } = ours): NftEvent => ({
  ...origin,
  type: 'delete',
  kind: 'element',
  set: { table, name },
  elements: [],
});

test('a transaction on our table is reported once, with the changes and the program', () => {
  const { nft, changes } = watch();
  const chain = { table: ours, name: 'dispatch' };
  nft.emit(
    { ...origin, type: 'new', kind: 'rule', object: { chain, exprs: [] } },
    inSet('frontends'),
    inSet('frontends'),
    generation,
  );
  assert.deepEqual(changes, [
    {
      objects: new Map([
        ['rule added', 1],
        ['element deleted', 2],
      ]),
      by: 'nft[42]',
      suspects: new Set(['frontends']),
    },
  ]);
});

test('suspect sets are named only when the table and its sets still exist', () => {
  const { nft, changes } = watch();
  const set = { table: ours, name: 'sources-24', flags: [], keyType: 0, keyLength: 4 };
  nft.emit({ ...origin, type: 'new', kind: 'set', object: set }, inSet('frontends'), generation);
  nft.emit({ ...origin, type: 'delete', kind: 'table', object: ours }, generation);
  nft.emit(inSet('endpoints'), inSet('a-set-of-theirs'), generation);
  assert.deepEqual(
    changes.map(({ suspects }) => suspects),
    [undefined, undefined, new Set(['endpoints', 'a-set-of-theirs'])],
  );
});

test('other tables, other families and the unwatched set are not reported', () => {
  const { nft, changes } = watch();
  nft.emit(
    { ...origin, type: 'new', kind: 'table', object: { family: 'ip', name: 'other' } },
    {
      ...origin,
      type: 'delete',
      kind: 'chain',
      object: { table: { family: 'ip6', name: 'kube-proxy' }, name: 'c' },
    },
    inSet('clients'),
    inSet('frontends', { family: 'ip6', name: 'kube-proxy' }),
    generation,
  );
  assert.deepEqual(changes, []);
});

test('lost events count as a change', () => {
  const { nft, changes } = watch();
  nft.listener?.overrun();
  assert.deepEqual(changes, [{ objects: new Map(), by: 'unknown' }]);
});

test('a lost subscription to a table is opened again, which counts as a change', async () => {
  const { nft, clock, changes, tableWatch } = watch();
  nft.listener?.failed(new Error('socket'));
  assert.equal(nft.listener, undefined);
  await clock.advance(5_000);
  assert.equal(changes.length, 1);
  nft.emit(inSet('frontends'), generation);
  assert.equal(changes.length, 2);
  tableWatch.close();
  assert.equal(nft.listener, undefined);
  assert.equal(clock.pending, 0);
});
