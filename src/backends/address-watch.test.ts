import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { FakeAddresses } from '../../test/kernel/fake-addresses.ts';
import { nodePortAddresses } from '../model/node-port-addresses.ts';
import { silentLogger } from '../obs/log.ts';
import { AddressWatch, nodePortSource } from './address-watch.ts';

async function start(...cidrs: string[]) {
  const addresses = new FakeAddresses('192.0.2.10');
  const clock = new FakeClock();
  const { relevant } = nodePortSource(addresses, nodePortAddresses('IPv4', cidrs)) ?? assert.fail();
  let changes = 0;
  const watch = new AddressWatch({
    source: addresses,
    relevant: relevant ?? assert.fail(),
    clock,
    logger: silentLogger,
    onChange: () => changes++,
  });
  await clock.advance(1_000);
  return { addresses, clock, watch, changes: () => changes };
}

test('changes of addresses that serve node ports are reported once per burst', async () => {
  const { addresses, clock, changes } = await start('192.0.2.0/24');
  assert.equal(changes(), 0);
  addresses.current = ['192.0.2.10', '192.0.2.11'];
  for (let i = 0; i < 5; i++) addresses.onChange();
  await clock.advance(1_000);
  assert.equal(changes(), 1);
  assert.equal(addresses.lists, 2);
});

test('changes of other addresses are not reported', async () => {
  const { addresses, clock, changes } = await start('192.0.2.0/24');
  addresses.current = ['192.0.2.10', '169.254.1.1', 'fe80::1'];
  addresses.onChange();
  await clock.advance(1_000);
  assert.equal(changes(), 0);
});

test('where every address serves node ports, none is listed or watched', () => {
  assert.equal(nodePortSource(new FakeAddresses(), nodePortAddresses('IPv4', [])), undefined);
});

test('a lost subscription to addresses is opened again, and changes meanwhile are reported', async () => {
  const { addresses, clock, watch, changes } = await start('192.0.2.0/24');
  addresses.onFailure(new Error('socket'));
  addresses.current = [];
  await clock.advance(6_000);
  assert.equal(changes(), 1);
  watch.close();
  assert.equal(clock.pending, 0);
});
