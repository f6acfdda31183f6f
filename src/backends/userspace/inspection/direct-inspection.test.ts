import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { planOf, plansByKey } from '../../../../test/cluster/plans.ts';
import { FakeAddresses } from '../../../../test/kernel/fake-addresses.ts';
import { Cleanups, echoAs, freePort, talk, tcpPeer } from '../../../../test/userspace/peers.ts';
import { openLocalForwarder } from '../../../forwarder/open.ts';
import { PortPool } from '../../../forwarder/port-pool.ts';
import { systemClock } from '../../../lib/clock.ts';
import { joinHostPort } from '../../../model/ip.ts';
import { nodePortAddresses } from '../../../model/node-port-addresses.ts';
import { silentLogger } from '../../../obs/log.ts';
import type { ServicePlan } from '../../../plan/service-plan.ts';
import type { Packet } from '../../inspection.ts';
import { DirectDriver } from '../direct-driver.ts';
import { ProxySockets } from '../proxy-sockets.ts';
import type { UserspaceSettings } from '../settings.ts';
import { UserspaceInspection } from './userspace-inspection.ts';

const cleanups = new Cleanups();
afterEach(() => cleanups.run());

const settings: UserspaceSettings = {
  family: 'IPv4',
  hostIP: '127.0.0.1',
  nodeIP: '127.0.0.1',
  localDetector: { kind: 'none' },
  nodePortAddresses: nodePortAddresses('IPv4', ['127.0.0.0/8']),
  portRange: undefined,
  choice: 'round-robin',
  keepsSource: false,
  masqueradeAll: false,
};
const addresses = new FakeAddresses('127.0.0.1');
const kernel = { reason: 'no privileges', addresses, close: () => {} };

async function open() {
  const clock = systemClock;
  const options = { dialTimeouts: [5_000], udpIdleMs: 30_000, clock, random: Math.random, report: () => {} };
  const forwarder = await openLocalForwarder(options);
  const pool = new PortPool(undefined, Math.random);
  const driver = new DirectDriver({
    settings,
    sockets: new ProxySockets({ forwarder, pool, choice: 'round-robin' }),
    reason: 'no privileges',
    logger: silentLogger,
    onClose: () => {},
  });
  cleanups.add(() => forwarder.close());
  const running = () => ({ driver, forwarder });
  const inspection = new UserspaceInspection({ settings, running, kernel });
  const program = (...plans: ServicePlan[]) =>
    driver.writeAll({ ...request(...plans), addresses: addresses.current }).attempt(new Map());
  return { driver, inspection, program };
}

function request(...plans: ServicePlan[]) {
  return { plans: plansByKey(...plans), serviceCIDRs: [], totalEndpoints: 0 };
}

function packet(destination: string, port: number): Packet {
  return { family: 'IPv4', protocol: 'TCP', source: '127.0.0.1', destination, port, origin: 'node' };
}

test('a listener is asked at its own address; a service address passes, with where it is served instead', async () => {
  const { driver, inspection, program } = await open();
  const [port, nodePort] = [await freePort(), await freePort()];
  const { ip, port: at } = await tcpPeer(cleanups, echoAs('a'));
  await program(planOf({ clusterIP: '10.96.0.1', port, nodePort }, [{ ip, port: at }]));
  const target = { endpoint: joinHostPort(ip, at), probability: 1, masquerade: true };
  const forward = { action: 'forward', targets: [target], affinitySeconds: 0 };
  assert.deepEqual((await inspection.ask(packet('127.0.0.1', nodePort))).fate, forward);
  const { address } = driver.addressRows()[0] ?? { address: '' };
  assert.deepEqual((await inspection.ask(packet('127.0.0.1', port))).fate, forward);
  assert.deepEqual(await inspection.ask(packet('10.96.0.1', port)), {
    fate: { action: 'pass' },
    evidence: [
      'packets are not captured: no privileges',
      `default/web 10.96.0.1:${port}/TCP, served at ${address}, not captured: no privileges`,
    ],
    lookedAt: 'the listeners of this process',
  });
});

test('after a sync there is nothing to open; then what changed is told', async () => {
  const { inspection, program } = await open();
  const [port, nodePort] = [await freePort(), await freePort()];
  const { ip, port: at } = await tcpPeer(cleanups, echoAs('a'));
  const endpoint = { ip, port: at };
  const plan = planOf({ clusterIP: '10.96.0.1', port, nodePort, externalIPs: ['198.51.100.7'] }, [endpoint]);
  const sctp = planOf({ clusterIP: '10.96.0.1', protocol: 'SCTP', port }, [endpoint]);
  await program(plan, sctp);
  assert.deepEqual(await inspection.compare(request(plan, sctp)), []);
  const without = planOf({ clusterIP: '10.96.0.1', port, affinitySeconds: 5 }, [endpoint]);
  const name = joinHostPort(ip, at);
  const service = 'default/web/TCP';
  assert.deepEqual(await inspection.compare(request(without)), [
    {
      service,
      kind: 'endpoints',
      object: `default/web/TCP 10.96.0.1:${port}/TCP cluster 127.0.0.1`,
      wanted: `${name} (round-robin, affinity 5 s)`,
      found: `${name} (round-robin)`,
    },
    {
      service,
      kind: 'listener',
      object: 'default/web/TCP IPv4 #1',
      wanted: undefined,
      found: `127.0.0.1:${nodePort}/TCP`,
    },
  ]);
});

test('where nothing runs every listener is missing, and none is opened', async () => {
  const port = await freePort();
  const inspection = new UserspaceInspection({
    settings,
    kernel,
    running: () => undefined,
  });
  const plan = planOf({ clusterIP: '10.96.0.1', port, nodePort: port }, [{ ip: '10.244.1.5' }]);
  const differences = await inspection.compare(request(plan));
  assert.deepEqual(
    differences.map(({ wanted, found }) => [wanted, found]),
    [
      [`127.0.0.1:${port}/TCP or any port of 127.0.0.1`, undefined],
      [`127.0.0.1:${port}/TCP`, undefined],
    ],
  );
  await assert.rejects(talk({ ip: '127.0.0.1', port }), { code: 'ECONNREFUSED' });
  assert.deepEqual((await inspection.ask(packet('127.0.0.1', port))).fate, { action: 'pass' });
});
