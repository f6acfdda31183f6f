import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { recordedNetlink } from '../../../test/kernel/recorded-netlink.ts';
import { type IpvsFailure, NetlinkIpvsClient } from './client.ts';
import type { IpvsOperation, ListedRealServer, VirtualServer } from './objects.ts';

const tcp: VirtualServer = {
  address: '10.96.0.1',
  port: 80,
  protocol: 'TCP',
  scheduler: 'rr',
  flags: 0,
  timeout: 0,
  netmask: 0xffffffff,
};
const udp6: VirtualServer = {
  address: 'fd00::1',
  port: 53,
  protocol: 'UDP',
  scheduler: 'mh',
  flags: 0x11,
  timeout: 600,
  netmask: 128,
};
const sctp: VirtualServer = { ...tcp, protocol: 'SCTP', scheduler: 'wrr', flags: 1, timeout: 10800 };
const absent: VirtualServer = { ...tcp, port: 81 };

/** Calls of the client, with recorded answers of a kernel; requests must be the same bytes. */
test('IPVS requests and answers match those recorded with a kernel', async () => {
  const text = readFileSync(join(import.meta.dirname, 'testdata/conversation.hex'), 'utf8');
  const { kernel, remaining } = recordedNetlink(text);
  const client = await NetlinkIpvsClient.connect(kernel, { clock: new FakeClock() });
  assert.deepEqual(await client.apply(additions), []);

  assert.deepEqual(await client.listServers(), [
    tcp,
    udp6,
    sctp,
    { ...tcp, address: '10.96.9.9', port: 443, scheduler: 'sh', flags: 1, timeout: 300, netmask: 0xffffff00 },
    { foreign: 'firewall mark 7', family: 'IPv4', scheduler: 'wlc' },
  ]);

  assert.deepEqual(await client.listRealServers(tcp), [idle('10.0.0.2', 8080, 0), idle('10.0.0.1', 8080, 1)]);
  assert.deepEqual(await client.listRealServers(udp6), [idle('fd01::5', 5353, 1)]);
  assert.deepEqual(await client.listRealServers(absent), []);
  assert.deepEqual(await client.listRealServers({ address: '10.96.9.9', port: 443, protocol: 'TCP' }), [
    { ...idle('10.9.9.9', 443, 3), forwarding: 'route' },
  ]);

  assert.deepEqual(messages(await client.apply(refusals)), [
    'adding virtual server 10.96.0.1:80/TCP: EEXIST (file already exists)',
    'changing virtual server 10.96.0.1:81/TCP: ESRCH (no such process)',
    'deleting virtual server 10.96.0.1:81/TCP: ESRCH (no such process)',
    'adding virtual server 10.96.0.1:82/TCP: ENOENT (no such file or directory)',
    'adding real server 10.0.0.1:8080 to 10.96.0.1:80/TCP: EEXIST (file already exists)',
    'changing real server 10.0.0.9:8080 of 10.96.0.1:80/TCP: ENOENT (no such file or directory)',
    'deleting real server 10.0.0.9:8080 from 10.96.0.1:80/TCP: ENOENT (no such file or directory)',
    'adding real server 10.0.0.9:8080 to 10.96.0.1:83/TCP: ESRCH (no such process)',
    'deleting real server 10.0.0.9:8080 from 10.96.0.1:83/TCP: ESRCH (no such process)',
  ]);

  await client.setTimeouts({ tcp: 901, tcpFin: 0, udp: 301 });
  await client.flush();
  assert.deepEqual(await client.listServers(), []);
  assert.equal(remaining(), 0);
});

const additions: IpvsOperation[] = [
  { verb: 'add', server: tcp },
  { verb: 'add', server: udp6 },
  { verb: 'add', server: sctp },
  { verb: 'add', server: tcp, real: { address: '10.0.0.1', port: 8080, weight: 1 } },
  { verb: 'add', server: tcp, real: { address: '10.0.0.2', port: 8080, weight: 1 } },
  { verb: 'add', server: udp6, real: { address: 'fd01::5', port: 5353, weight: 1 } },
  { verb: 'edit', server: tcp, real: { address: '10.0.0.2', port: 8080, weight: 0 } },
];

/** All but the last two are refused. */
const refusals: IpvsOperation[] = [
  { verb: 'add', server: tcp },
  { verb: 'edit', server: absent },
  { verb: 'delete', server: absent },
  { verb: 'add', server: { ...tcp, port: 82, scheduler: 'foo' } },
  { verb: 'add', server: tcp, real: { address: '10.0.0.1', port: 8080, weight: 1 } },
  { verb: 'edit', server: tcp, real: { address: '10.0.0.9', port: 8080, weight: 1 } },
  { verb: 'delete', server: tcp, real: { address: '10.0.0.9', port: 8080 } },
  { verb: 'add', server: { ...tcp, port: 83 }, real: { address: '10.0.0.9', port: 8080, weight: 1 } },
  { verb: 'delete', server: { ...tcp, port: 83 }, real: { address: '10.0.0.9', port: 8080 } },
  { verb: 'edit', server: { ...tcp, scheduler: 'lc', flags: 1, timeout: 77 } },
  { verb: 'delete', server: sctp },
];

function idle(address: string, port: number, weight: number): ListedRealServer {
  const connections = { activeConnections: 0, inactiveConnections: 0, persistentConnections: 0 };
  return { address, port, weight, forwarding: 'masquerade', ...connections };
}

function messages(failures: readonly IpvsFailure[]): string[] {
  return failures.map(({ error }) => error.message);
}
