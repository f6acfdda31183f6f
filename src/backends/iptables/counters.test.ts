import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AcctClient } from '../../kernel/acct/client.ts';
import { NetlinkError } from '../../kernel/netlink/error.ts';
import { silentLogger } from '../../obs/log.ts';
import type { Sample } from '../../obs/metrics.ts';
import { PacketCounters } from './counters.ts';

const EINVAL = 22;
const EBUSY = 16;

function acct(overrides: Partial<AcctClient> = {}) {
  const made = new Map<string, bigint>();
  const client: AcctClient = {
    get: async (name) => {
      const packets = made.get(name);
      return packets === undefined ? undefined : { name, packets, bytes: 0n };
    },
    create: async (name) => void made.set(name, 0n),
    close() {},
    ...overrides,
  };
  return { made, client };
}

test('counters are made when missing, and read by every scrape', async () => {
  const { made, client } = acct();
  const counters = await PacketCounters.open(client, silentLogger);
  assert.ok(counters);
  assert.deepEqual(await counters?.ensure(silentLogger), { invalidDropped: true, localhostAccepted: true });
  assert.deepEqual([...made.keys()], ['ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts']);
  const readers: (() => readonly Sample[] | Promise<readonly Sample[]>)[] = [];
  const metric = { readFrom: (read: (typeof readers)[number]) => void readers.push(read) };
  counters.publish({ ctStateInvalidDropped: metric, localhostNodePortsAccepted: metric });
  made.set('localhost_nps_accepted_pkts', 7n);
  assert.deepEqual(await Promise.all(readers.map((read) => read())), [
    [{ labels: {}, value: 0 }],
    [{ labels: {}, value: 7 }],
  ]);
});

test('a counter that another program made meanwhile counts as made', async () => {
  const refuse = async () => Promise.reject(new NetlinkError('create', { errno: EBUSY, text: '' }));
  const counters = await PacketCounters.open(acct({ create: refuse }).client, silentLogger);
  assert.deepEqual(await counters?.ensure(silentLogger), { invalidDropped: true, localhostAccepted: true });
});

test('a counter that cannot be made is reported as absent', async () => {
  const refuse = async () => Promise.reject(new NetlinkError('create', { errno: EINVAL, text: '' }));
  const counters = await PacketCounters.open(acct({ create: refuse }).client, silentLogger);
  assert.deepEqual(await counters?.ensure(silentLogger), { invalidDropped: false, localhostAccepted: false });
});

test('a kernel without counters is no error', async () => {
  let isClosed = false;
  const { client } = acct({
    get: async () => Promise.reject(new NetlinkError('get', { errno: EINVAL, text: '' })),
    close: () => {
      isClosed = true;
    },
  });
  assert.equal(await PacketCounters.open(client, silentLogger), undefined);
  assert.ok(isClosed);
});
