import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { ServicePortParts } from '../../../test/cluster/objects.ts';
import { FaultyPlan, planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { FakeAddresses } from '../../../test/kernel/fake-addresses.ts';
import { repairParts } from '../../../test/repair-parts.ts';
import {
  Cleanups,
  echoAs,
  fateOf,
  freePort,
  talk,
  tcpPeer,
  UDPClient,
  udpPeer,
} from '../../../test/userspace/peers.ts';
import { openLocalForwarder } from '../../forwarder/open.ts';
import { PortPool } from '../../forwarder/port-pool.ts';
import { systemClock } from '../../lib/clock.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { type Logger, silentLogger } from '../../obs/log.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { SyncEngine } from '../engine.ts';
import { DirectDriver, listenableAddresses } from './direct-driver.ts';
import { ProxySockets } from './proxy-sockets.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

async function open() {
  const forwarder = await openLocalForwarder({
    dialTimeouts: [5_000],
    udpIdleMs: 30_000,
    clock: systemClock,
    random: Math.random,
    report: () => {},
  });
  const told: string[] = [];
  const logger: Logger = {
    ...silentLogger,
    info: (_message, attributes) => void told.push(String(attributes?.table)),
  };
  const driver = new DirectDriver({
    settings: {
      family: 'IPv4',
      hostIP: '127.0.0.1',
      nodeIP: '127.0.0.1',
      localDetector: { kind: 'none' },
      nodePortAddresses: nodePortAddresses('IPv4', ['127.0.0.0/8']),
      portRange: undefined,
      choice: 'round-robin',
      keepsSource: false,
      masqueradeAll: false,
    },
    sockets: new ProxySockets({
      forwarder,
      pool: new PortPool(undefined, Math.random),
      choice: 'round-robin',
    }),
    reason: 'no privileges',
    logger,
    onClose: () => {},
  });
  const backend = new SyncEngine({
    family: 'IPv4',
    driver,
    addresses: listenableAddresses(new FakeAddresses('127.0.0.1'), 'IPv4'),
    retryMs: 0,
    ...repairParts(systemClock),
    logger,
    clock: systemClock,
    requestSync: () => {},
  });
  cleanups.add(() => forwarder.close());
  cleanups.add(() => backend.close());
  const program = async (...plans: ServicePlan[]): Promise<void> => {
    await backend.sync({ plans: plansByKey(...plans), changed: 'all', serviceCIDRs: [], totalEndpoints: 0 });
  };
  return { driver, backend, program, told };
}

async function planFor(name: string, parts: Partial<ServicePortParts> = {}): Promise<ServicePlan> {
  const { ip, port } = await tcpPeer(cleanups, echoAs(name));
  return planOf({ name, clusterIP: '10.96.0.1', ...parts }, [{ ip, port }]);
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}

test('a cluster IP is served at loopback, at its own port when that can be had', async () => {
  const { driver, program, told } = await open();
  const port = await freePort();
  await program(await planFor('a', { port }), await planFor('b', { port, clusterIP: '10.96.0.2' }));
  const [a, b] = driver.addressRows();
  assert.equal(a?.address, `127.0.0.1:${port}`);
  assert.match(a?.note ?? '', /not captured: no privileges/);
  assert.equal(await talk({ ip: '127.0.0.1', port }, 'x'), 'a:x');
  assert.notEqual(portOf(b?.address ?? ''), port);
  assert.equal(await talk({ ip: '127.0.0.1', port: portOf(b?.address ?? '') }, 'x'), 'b:x');
  assert.match(told.at(-1) ?? '', /SERVICE +FRONTEND +ADDRESS/);
});

test('node ports are served where they are configured, TCP and UDP', async () => {
  const { program } = await open();
  const nodePort = await freePort();
  const udp = await udpPeer(cleanups, 'u');
  await program(
    await planFor('a', { nodePort }),
    planOf({ name: 'dns', protocol: 'UDP', clusterIP: '10.96.0.3', nodePort }, [
      { ip: udp.ip, port: udp.port },
    ]),
  );
  assert.equal(await talk({ ip: '127.0.0.1', port: nodePort }), 'a:');
  const client = await UDPClient.open(cleanups);
  assert.equal(String(await client.ask({ ip: '127.0.0.1', port: nodePort }, 'q')), 'u:q');
});

test('what cannot be served is told with the reason, and a service that goes is closed', async () => {
  const { driver, program } = await open();
  const nodePort = await freePort();
  const plan = await planFor('a', {
    nodePort,
    externalIPs: ['198.51.100.7'],
    loadBalancerVIPs: ['198.51.100.8'],
    sourceRanges: ['203.0.113.0/24'],
  });
  await program(plan, planOf({ name: 'empty', clusterIP: '10.96.0.9' }, []));
  const notes = new Map(driver.addressRows().map(({ frontend, note }) => [frontend, note]));
  assert.match(notes.get('198.51.100.7:80/TCP') ?? '', /not captured/);
  assert.match(notes.get('198.51.100.8:80/TCP') ?? '', /source ranges/);
  assert.match(notes.get('10.96.0.9:80/TCP') ?? '', /^rejected: /);
  await program();
  assert.equal(await fateOf({ ip: '127.0.0.1', port: nodePort }), 'ECONNREFUSED');
  assert.deepEqual(driver.addressRows(), []);
});

test('endpoints change under an address that stays', async () => {
  const { driver, program } = await open();
  await program(await planFor('a'));
  const address = driver.addressRows()[0]?.address ?? '';
  await program(await planFor('b', { name: 'a' }));
  assert.equal(driver.addressRows()[0]?.address, address);
  assert.equal(await talk({ ip: '127.0.0.1', port: portOf(address) }), 'b:');
});

test('a node port that another service had is served as soon as that is gone', async () => {
  const { backend, program } = await open();
  const nodePort = await freePort();
  const first = await planFor('a', { nodePort });
  const second = await planFor('b', { nodePort, clusterIP: '10.96.0.2' });
  await program(first, second);
  assert.equal(await talk({ ip: '127.0.0.1', port: nodePort }), 'a:');
  const changed = new Set([first.port.key, second.port.key]);
  await backend.sync({ plans: plansByKey(second), changed, serviceCIDRs: [], totalEndpoints: 0 });
  assert.equal(await talk({ ip: '127.0.0.1', port: nodePort }), 'b:');
});

test('a service port that cannot be prepared is refused with the reason, and the others are served', async () => {
  const { backend } = await open();
  const nodePort = await freePort();
  const plans = plansByKey(
    FaultyPlan.of({ name: 'a-faulty', clusterIP: '10.96.0.9' }),
    await planFor('b', { nodePort }),
  );
  const { refused } = await backend.sync({ plans, changed: 'all', serviceCIDRs: [], totalEndpoints: 0 });
  assert.deepEqual(
    refused.map(({ key, error }) => `${key} ${error.message}`),
    ['default/a-faulty/TCP cannot be prepared: no decision can be made'],
  );
  assert.equal(await talk({ ip: '127.0.0.1', port: nodePort }), 'b:');
});
