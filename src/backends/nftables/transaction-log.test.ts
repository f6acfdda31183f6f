import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import type { LogAttributes, Logger } from '../../obs/log.ts';
import { silentLogger } from '../../obs/log.ts';
import { addressBytes, portBytes, protocolBytes, wordBytes } from './bytes.ts';
import { Transaction } from './transaction.ts';
import { TransactionLog } from './transaction-log.ts';

const DAY_MS = 86_400_000;

function harness(verbosity: number) {
  const records: { message: string; attributes: LogAttributes }[] = [];
  const logger: Logger = {
    ...silentLogger,
    v: (level) => ({
      ...silentLogger,
      enabled: level <= verbosity,
      info: (message, attributes = {}) => void records.push({ message, attributes }),
    }),
  };
  const clock = new FakeClock(0);
  const client = new FakeNft();
  return { records, clock, client, log: new TransactionLog({ family: 'IPv4', client, logger, clock }) };
}

function transaction() {
  const web = addressBytes('10.96.0.1') + protocolBytes('TCP') + portBytes(80);
  const change = new Transaction('IPv4');
  change.addTable(false);
  for (const set of ['frontends', 'handlers', 'endpoints', 'cluster-addresses'] as const) change.addSet(set);
  change.addChain({ name: 'cluster-pick-1', rules: [] });
  change.refillChain({
    name: 'cluster-pick-1',
    rules: [
      [
        { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(6) },
        { kind: 'verdict', verdict: { kind: 'goto', chain: 'reject-packet' } },
      ],
    ],
  });
  change.add('handlers', wordBytes(1), 'goto cluster-pick-1\n');
  change.add('frontends', web, `${wordBytes(1)}default/web`);
  change.add('endpoints', web + wordBytes(0), addressBytes('10.244.0.10') + portBytes(8080));
  change.delete('cluster-addresses', addressBytes('10.96.0.2'));
  return change.finish();
}

test('at verbosity 9 every transaction is shown, line by line', () => {
  const { records, log } = harness(9);
  log.committing(transaction());
  assert.equal(records[0]?.message, 'Committing');
  assert.deepEqual(String(records[0]?.attributes.transaction).split('\n'), [
    'add table ip kube-proxy',
    'add set ip kube-proxy frontends',
    'add set ip kube-proxy handlers',
    'add set ip kube-proxy endpoints',
    'add set ip kube-proxy cluster-addresses',
    'add chain ip kube-proxy cluster-pick-1',
    'flush chain ip kube-proxy cluster-pick-1',
    'add rule ip kube-proxy cluster-pick-1 [ cmp op eq sreg 0 value 0x06 ] [ goto reject-packet ]',
    'add element ip kube-proxy handlers 0:1 : goto cluster-pick-1',
    'add element ip kube-proxy frontends 10.96.0.1 . tcp . 80 : 0:1',
    'add element ip kube-proxy endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.0.10 . 8080',
    'delete element ip kube-proxy cluster-addresses 10.96.0.2',
  ]);
});

test('below verbosity 9 no transaction is shown', () => {
  const { records, log } = harness(8);
  log.committing(transaction());
  assert.deepEqual(records, []);
});

test('at verbosity 4 a refused transaction is shown with the table, once a day', async () => {
  const { records, log, clock, client } = harness(4);
  await log.refused(transaction());
  assert.equal(records[0]?.message, 'Transaction refused');
  assert.match(String(records[0]?.attributes.transaction), /^add table ip kube-proxy\n/);
  assert.equal(records[0]?.attributes.table, 'there is no table ip kube-proxy');
  await log.refused(transaction());
  await clock.advance(DAY_MS - 1);
  await log.refused(transaction());
  assert.equal(records.length, 1);
  await clock.advance(1);
  const addresses = new Transaction('IPv4');
  addresses.addTable(false);
  addresses.addSet('cluster-addresses');
  for (let i = 0; i < 150; i++) addresses.add('cluster-addresses', addressBytes(`10.96.0.${i}`), '');
  addresses.addChain({ name: 'dispatch', rules: [] });
  await client.commit(addresses.finish());
  await log.refused(transaction());
  const listing = String(records[1]?.attributes.table).split('\n');
  assert.deepEqual(listing.slice(0, 3), [
    'table ip kube-proxy {',
    '\tset cluster-addresses {',
    '\t\tcluster-addresses 10.96.0.0',
  ]);
  assert.deepEqual(listing.slice(-5), ['\t\t… and 50 more', '\t}', '\tchain dispatch {', '\t}', '}']);
});

test('a table that cannot be listed does not hide the transaction', async () => {
  const { records, log, client } = harness(4);
  client.getTable = async () => {
    throw new Error('no netlink');
  };
  await log.refused(transaction());
  assert.match(String(records[0]?.attributes.table), /no netlink/);
  assert.match(String(records[0]?.attributes.transaction), /frontends/);
});
