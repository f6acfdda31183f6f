import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { recordedNetlink } from '../../../test/kernel/recorded-netlink.ts';
import { type EntryFailure, NetlinkIpsetClient } from './client.ts';
import type { HashSet, PortBitmap } from './objects.ts';

const size = { hashSize: 1024, maxElements: 65536 };
const clusterIPs: HashSet = { name: 'KUBE-CLUSTER-IP', type: 'hash:ip,port', family: 'IPv4', ...size };
const loopBack6: HashSet = { name: 'KUBE-6-LOOP-BACK', type: 'hash:ip,port,ip', family: 'IPv6', ...size };
const sources: HashSet = { name: 'KUBE-SOURCES', type: 'hash:ip,port,net', family: 'IPv4', ...size };
const addresses6: HashSet = { name: 'KUBE-6-IPVS-IPS', type: 'hash:ip', family: 'IPv6', ...size };
const ports: PortBitmap = { name: 'KUBE-NODE-PORT-TCP', type: 'bitmap:port', from: 0, to: 65535 };

/** Calls of the client, with recorded answers of a kernel; requests must be the same bytes. */
test('ipset requests and answers match those recorded with a kernel', async () => {
  const text = readFileSync(join(import.meta.dirname, 'testdata/conversation.hex'), 'utf8');
  const { kernel, remaining } = recordedNetlink(text);
  const client = new NetlinkIpsetClient(kernel, { clock: new FakeClock() });
  assert.equal(await client.protocol(), 7);
  for (const set of [clusterIPs, loopBack6, sources, addresses6, ports, ports]) await client.create(set);
  await assert.rejects(client.create({ ...ports, to: 100 }), {
    message:
      'creating ipset KUBE-NODE-PORT-TCP: EEXIST (a set with this name has another type, family or size)',
  });

  const entries = [
    '10.96.0.1,tcp:80',
    'fd00::1,tcp:80',
    '10.96.0.1,udp:53',
    '10.96.0.2,sctp:7',
    '10.96.0.1,tcp:80',
  ];
  assert.deepEqual(messages(await client.add(clusterIPs, entries)), [
    'adding fd00::1,tcp:80 to ipset KUBE-CLUSTER-IP: ' +
      'IPSET_ERR_PROTOCOL (the kernel does not understand the request)',
  ]);
  assert.deepEqual(await client.add(loopBack6, ['fd00::1,tcp:80,fd00::1']), []);
  assert.deepEqual(
    await client.add(sources, ['10.0.0.1,tcp:80,192.0.2.77/24', '10.0.0.1,tcp:80,192.0.2.7/32']),
    [],
  );
  assert.deepEqual(await client.add(addresses6, ['fd00::1']), []);
  assert.deepEqual(await client.add(ports, ['30080', '0', '65535']), []);

  const listed = await client.list(clusterIPs.name);
  assert.deepEqual(listed && [listed.type, listed.family, listed.references], ['hash:ip,port', 'IPv4', 0]);
  assert.deepEqual(listed?.entries.toSorted(), ['10.96.0.1,tcp:80', '10.96.0.1,udp:53', '10.96.0.2,sctp:7']);
  assert.deepEqual((await client.list(loopBack6.name))?.entries, ['fd00::1,tcp:80,fd00::1']);
  assert.deepEqual((await client.list(sources.name))?.entries.toSorted(), [
    '10.0.0.1,tcp:80,192.0.2.0/24',
    '10.0.0.1,tcp:80,192.0.2.7',
  ]);
  assert.deepEqual(await client.list(addresses6.name), {
    name: 'KUBE-6-IPVS-IPS',
    type: 'hash:ip',
    family: 'IPv6',
    references: 0,
    entries: ['fd00::1'],
  });
  assert.deepEqual((await client.list(ports.name))?.entries, ['0', '30080', '65535']);
  assert.equal(await client.list('none'), undefined);

  assert.deepEqual(await client.delete(ports, ['30080', '7']), []);
  await client.flush(clusterIPs.name);
  assert.deepEqual((await client.list(clusterIPs.name))?.entries, []);
  await assert.rejects(client.add({ ...ports, name: 'none' }, ['1']), {
    message: 'adding entries to ipset none: ENOENT (no such file or directory)',
  });
  await assert.rejects(client.flush('none'), /flushing ipset none: ENOENT/);
  assert.equal(await client.destroy(ports.name), true);
  assert.equal(await client.destroy(ports.name), false);
  assert.equal(remaining(), 0);
});

function messages(failures: readonly EntryFailure[]): string[] {
  return failures.map(({ error }) => error.message);
}
