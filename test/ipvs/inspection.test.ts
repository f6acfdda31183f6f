import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Difference, Inspection, Packet } from '../../src/backends/inspection.ts';
import { openInspection } from '../../src/backends/ipvs/inspection.ts';
import { type LinuxIpvs, openLinuxIpvs } from '../../src/backends/ipvs/linux-kernel.ts';
import { Commands } from '../../src/kernel/iptables/commands.ts';
import { ipvsOpeners } from '../../src/kernel/ipvs/openers.ts';
import { runProgram } from '../../src/kernel/program.ts';
import { systemFiles } from '../../src/kernel/system-files.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import { silentLogger } from '../../src/obs/log.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { sh } from '../cluster/lab/namespace.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import { ipvsEngine, settings as settings4 } from './harness.ts';
import { onIpvsKernel } from './on-ipvs-kernel.ts';

/** Inspection of a real kernel with IPVS, also after changes with `ipvsadm`, `ipset` and `ip`. */

const settings = {
  IPv4: settings4,
  IPv6: {
    ...settings4,
    family: 'IPv6',
    localDetector: { kind: 'cidr', cidr: 'fd00:244::/48' },
    nodePortAddresses: nodePortAddresses('IPv6', []),
    nodeIP: 'fd00:10::5',
  },
} as const;

const plans: Readonly<Record<Family, readonly ServicePlan[]>> = {
  IPv4: [
    planOf({ clusterIP: '10.96.0.1', nodePort: 30080 }, [
      { ip: '10.244.0.1', local: true },
      { ip: '10.244.1.1' },
    ]),
    planOf({ name: 'dns', clusterIP: '10.96.0.10', port: 53, protocol: 'UDP', affinitySeconds: 60 }, [
      { ip: '10.244.1.9' },
    ]),
    planOf({ name: 'empty', clusterIP: '10.96.0.20' }),
    planOf(
      {
        name: 'guarded',
        clusterIP: '10.96.0.30',
        loadBalancerVIPs: ['203.0.113.10'],
        sourceRanges: ['198.51.100.0/24'],
      },
      [{ ip: '10.244.1.2' }],
    ),
  ],
  IPv6: [
    planOf({ clusterIP: 'fd00:96::1' }, [{ ip: 'fd00:244::1', local: true }, { ip: 'fd00:244:0:1::1' }]),
  ],
};

await onIpvsKernel(import.meta.url, () => {
  let linux: LinuxIpvs;
  before(async () => {
    sh(
      'ip link add kpt-node type veth peer name kpt-peer && ip link set kpt-node up && ip link set kpt-peer up',
    );
    sh('ip addr add 192.0.2.5/24 dev kpt-node && ip addr add fd00:10::5/64 dev kpt-node nodad');
    sh('ip route add default dev kpt-node && ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev kpt-node');
    linux = await openLinux();
    for (const family of families) await synced(linux, family);
  });
  after(() => linux?.close());

  for (const family of families) {
    test(`${family}: an inspection finds no difference after a sync`, () =>
      inspecting(family, async (inspection) =>
        assert.deepEqual(await inspection.compare(requestOf(family)), []),
      ));
  }
  test('an inspection reads back where IPv4 packets go', () => inspecting('IPv4', askSome));
  test('an inspection reads back where IPv6 packets go', () => inspecting('IPv6', askSix));
  test('an inspection names every difference', () => inspecting('IPv4', tamper));
});

async function askSome(inspection: Inspection): Promise<void> {
  const fate = async (parts: Partial<Packet>) => (await inspection.ask(packetOf(parts))).fate;
  const both = (first: boolean, second: boolean) => ({
    action: 'forward',
    affinitySeconds: 0,
    targets: [
      { endpoint: '10.244.0.1:8080', probability: 0.5, masquerade: first },
      { endpoint: '10.244.1.1:8080', probability: 0.5, masquerade: second },
    ],
  });
  assert.deepEqual(await fate({}), both(true, true));
  assert.deepEqual(await fate({ source: '10.244.0.1' }), both(true, false));
  assert.deepEqual(await fate({ destination: '192.0.2.5', port: 30080 }), both(true, true));
  assert.deepEqual(await fate({ destination: '10.96.0.20' }), { action: 'reject' });
  assert.deepEqual(await fate({ port: 22 }), { action: 'reject' });
  assert.deepEqual(await fate({ destination: '203.0.113.10' }), { action: 'drop' });
  const admitted = await fate({ destination: '203.0.113.10', source: '198.51.100.9' });
  assert.equal(admitted.action, 'forward');
  const own = { destination: '203.0.113.10', source: '203.0.113.10', origin: 'node' } as const;
  assert.deepEqual(await fate(own), { action: 'drop' });
  const { evidence } = await inspection.ask(packetOf({}));
  const known = sh('ipvsadm -Sn; ipset save; iptables-save').split('\n');
  for (const line of evidence.filter((text) => !text.startsWith('#'))) {
    assert.ok(known.includes(line.replace(/^-t \S+ /, '')), line);
  }
}

async function askSix(inspection: Inspection): Promise<void> {
  const source = 'fd00:244::1';
  const packet = packetOf({ family: 'IPv6', source, destination: 'fd00:96::1' });
  assert.deepEqual((await inspection.ask(packet)).fate, {
    action: 'forward',
    affinitySeconds: 0,
    targets: [
      { endpoint: '[fd00:244:0:1::1]:8080', probability: 0.5, masquerade: false },
      { endpoint: '[fd00:244::1]:8080', probability: 0.5, masquerade: true },
    ],
  });
}

async function tamper(inspection: Inspection): Promise<void> {
  sh('ipvsadm -d -t 10.96.0.1:80 -r 10.244.1.1:8080');
  sh('ipvsadm -D -t 10.96.0.20:80');
  sh('ipset del KUBE-CLUSTER-IP 10.96.0.1,tcp:80');
  sh('ip addr del 10.96.0.30/32 dev kube-ipvs0');
  sh('ip addr add 10.9.9.9/32 dev kube-ipvs0');
  sh('iptables -t nat -F KUBE-MARK-MASQ');
  sh('iptables -D INPUT -m comment --comment "kube-proxy firewall rules" -j KUBE-PROXY-FIREWALL');
  assert.deepEqual((await inspection.compare(requestOf('IPv4'))).map(briefly).sort(), [
    'default/empty/TCP virtual server 10.96.0.20:80/TCP missing',
    'default/guarded/TCP address 10.96.0.30 missing',
    'default/web/TCP ipset entry KUBE-CLUSTER-IP 10.96.0.1,tcp:80 missing',
    'default/web/TCP real server 10.96.0.1:80/TCP 10.244.1.1:8080 missing',
    'nobody address 10.9.9.9 too many',
    'nobody jump filter INPUT missing',
    'nobody rule nat KUBE-MARK-MASQ missing',
  ]);
}

async function openLinux(mayLoad = true): Promise<LinuxIpvs> {
  const open = await ipvsOpeners(systemClock);
  return openLinuxIpvs({ open, run: runProgram, clock: systemClock, logger: silentLogger, mayLoad });
}

async function synced(linux: LinuxIpvs, family: Family): Promise<void> {
  const backend = ipvsEngine(
    {
      settings: settings[family],
      kernel: linux.kernelOf(family),
      metrics: { iptablesRestoreFailures: { inc: () => assert.fail('rules were refused') } },
      logger: silentLogger,
      clock: systemClock,
    },
    () => {},
  );
  const { refused } = await backend.sync({ ...requestOf(family), changed: 'all' });
  assert.deepEqual(refused, []);
  await backend.close();
}

async function inspecting(family: Family, look: (inspection: Inspection) => Promise<void>): Promise<void> {
  const linux = await openLinux(false);
  const inspection = await openInspection({
    settings: settings[family],
    kernel: { ...linux.kernelOf(family), close: () => linux.close() },
    commands: new Commands({ family, run: runProgram, clock: systemClock, logger: silentLogger }),
    files: systemFiles,
    clock: systemClock,
  });
  try {
    await look(inspection);
  } finally {
    await inspection.close();
  }
}

function packetOf(parts: Partial<Packet>): Packet {
  return {
    family: 'IPv4',
    protocol: 'TCP',
    source: '192.0.2.77',
    destination: '10.96.0.1',
    port: 80,
    origin: { interface: 'kpt-node' },
    ...parts,
  };
}

function requestOf(family: Family) {
  return { plans: plansByKey(...plans[family]), serviceCIDRs: [], totalEndpoints: 0 };
}

function briefly({ service, kind, object, wanted }: Difference): string {
  return `${service ?? 'nobody'} ${kind} ${object} ${wanted === undefined ? 'too many' : 'missing'}`;
}
