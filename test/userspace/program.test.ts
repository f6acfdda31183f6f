import assert from 'node:assert/strict';
import { afterEach, before, test } from 'node:test';
import type { InspectionContext } from '../../src/backends/mode.ts';
import { userspaceMode } from '../../src/backends/userspace/mode.ts';
import { defaultConfig } from '../../src/config/defaults.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import { eventuallyEqual } from '../eventually.ts';
import { kubeProxy, run } from '../program/run.ts';
import { nodeIPs, prepareNode } from './node-under-test.ts';
import { Cleanups, echoAs, type Peer, talk, tcpPeer } from './peers.ts';
import { type StartOptions, startProgram, writeManifests } from './program-under-test.ts';

const cleanups = new Cleanups();
const NOBODY = 65_534;

async function manifests(): Promise<string> {
  const peer = await tcpPeer(cleanups, echoAs('web'), nodeIPs.IPv4);
  return writeManifests(cleanups, { name: 'web', clusterIP: '10.96.0.1', nodePort: 30_080, peer });
}

/** Starts the program and returns its log once that matches. */
async function start(pattern: RegExp, options: StartOptions = {}): Promise<string> {
  const flags = ['--conntrack-max-per-core=0'];
  const program = await startProgram(cleanups, await manifests(), pattern, { flags, ...options });
  return program.stderr();
}

function inspectionContext(): InspectionContext {
  return {
    family: 'IPv4',
    config: defaultConfig(),
    gateEnabled: () => true,
    nodeIP: nodeIPs.IPv4,
    nodePortAddresses: nodePortAddresses('IPv4', []),
    localDetector: { kind: 'none' },
    logger: silentLogger,
    clock: systemClock,
  };
}

/** Removes the logger's quoting. */
function unescaped(stderr: string): string {
  return stderr.replaceAll('\\"', '"');
}

function answers(at: Peer, answer = 'web:!'): Promise<void> {
  const ask = () => talk(at, '!').catch(({ code, message }: NodeJS.ErrnoException) => code ?? message);
  return eventuallyEqual(`${at.ip}:${at.port} answers`, ask, answer, { everyMs: 20 });
}

inNamespace(import.meta.url, () => {
  before(prepareNode);
  afterEach(() => cleanups.run());

  test('with privileges, cluster IPs and node ports work, and --cleanup removes the table', async () => {
    await start(/running in (dual|single)-stack mode/);
    await answers({ ip: '10.96.0.1', port: 80 });
    await answers({ ip: nodeIPs.IPv4, port: 30_080 });
    await answers({ ip: '127.0.0.1', port: 30_080 });
    await cleanups.run();
    assert.match(sh('nft list tables'), /kube-proxy-userspace/);
    const { code, stderr } = await run(kubeProxy, ['--cleanup']);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(sh('nft list tables'), /kube-proxy/);
  });

  test('the address to bind to may appear after the start', async () => {
    const late = '192.0.2.77';
    const retry = ['--iptables-sync-period=1s', '--iptables-min-sync-period=1s'];
    const flags = ['--conntrack-max-per-core=0', `--bind-address=${late}`, ...retry];
    await start(/cannot hold a port for answers at 192\.0\.2\.77: .*EADDRNOTAVAIL/, { flags });
    sh(`ip addr add ${late}/32 dev lo`);
    cleanups.add(() => sh(`ip addr del ${late}/32 dev lo`));
    await answers({ ip: '10.96.0.1', port: 80 });
  });

  test('an inspection in another process reads the kernel and opens no listeners', async () => {
    cleanups.add(() => sh('nft flush ruleset'));
    await start(/running in (dual|single)-stack mode/);
    await answers({ ip: '10.96.0.1', port: 80 });
    const table = sh('nft list table ip kube-proxy-userspace');
    const [, port = ''] = /10\.96\.0\.1 \. tcp \. 80 .*?: (\d+)/.exec(table) ?? [];
    const returns = sh('nft list map ip kube-proxy-userspace return-ports');
    const inspection = await userspaceMode.inspect(inspectionContext());
    cleanups.add(() => inspection.close());
    const parts = { clusterIP: '10.96.0.1', portName: 'http', nodePort: 30_080 };
    const plans = plansByKey(planOf(parts, [{ ip: nodeIPs.IPv4, port: 8080 }]));
    const request = { plans, serviceCIDRs: [], totalEndpoints: 1 };
    const lines = (await inspection.compare(request)).map(
      ({ kind, object, wanted, found }) => `${kind} ${object}: ${found} -> ${wanted}`,
    );
    const unopened = 'the port of a socket to be opened';
    const [now, then] = [port, unopened].map((text) => `${text} comment "default/web:http"`);
    const outlet = 'cluster, source kept for all at the cluster IP';
    const returnsTo = (protocol: string) => new RegExp(`${protocol} : (\\d+)`).exec(returns)?.[1];
    // The kernel lists the elements of a map in any order.
    assert.deepEqual(
      [...lines.slice(0, 4), ...lines.slice(4).toSorted()],
      [
        `listener default/web:http/TCP ${outlet}: undefined -> ${nodeIPs.IPv4}:any/TCP`,
        `element portals 10.96.0.1 . tcp . 80: ${now} -> ${then}`,
        `element nodeports tcp . 30080: ${now} -> ${then}`,
        `element proxy-ports tcp . ${port}: present -> undefined`,
        ...['tcp', 'udp'].map(
          (protocol) => `element return-ports ${protocol}: ${returnsTo(protocol)} -> ${unopened}`,
        ),
      ],
    );
    await assert.rejects(
      inspection.ask({
        family: 'IPv4',
        protocol: 'TCP',
        source: nodeIPs.IPv4,
        destination: '10.96.0.1',
        port: 80,
        origin: 'node',
      }),
      new RegExp(`sent to ${nodeIPs.IPv4}:${port}/TCP, and who listens there is not of this process`),
    );
    assert.equal(sh('nft list table ip kube-proxy-userspace'), table);
    await answers({ ip: '10.96.0.1', port: 80 });
  });

  const fallbacks: [string, StartOptions, RegExp][] = [
    ['without privileges', { uid: NOBODY }, /not captured: not running as root/],
    [
      'as root where nf_tables is out of reach',
      { through: ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin', '--'] },
      /not captured: CAP_NET_ADMIN is missing/,
    ],
  ];
  for (const [where, options, reason] of fallbacks) {
    test(`${where} it listens where it may, and logs its addresses and what it cannot serve`, async () => {
      const stderr = await start(/Services and their addresses/, options);
      await new Promise((resolve) => setTimeout(resolve, 200));
      assert.match(stderr, reason);
      const row = /^\tdefault\/web:http +10\.96\.0\.1:80\/TCP +127\.0\.0\.1:(\d+)/m.exec(stderr);
      assert.ok(row, stderr);
      await answers({ ip: '127.0.0.1', port: Number(row[1]) });
      await answers({ ip: nodeIPs.IPv4, port: 30_080 });
      assert.doesNotMatch(stderr, /Sync failed|iptables|Failed to remove rules/);
      assert.doesNotMatch(sh('nft list tables'), /kube-proxy/);
    });
  }

  test('without privileges, node ports follow address changes of the node', async () => {
    const [first, second] = [
      { ip: '203.0.115.1', port: 30_080 },
      { ip: '203.0.115.2', port: 30_080 },
    ];
    const flags = ['--conntrack-max-per-core=0', '--nodeport-addresses=203.0.115.0/24'];
    // With this route, connections to an address that the node has lost are refused, not dropped.
    sh('ip route add local 203.0.115.0/24 dev lo');
    cleanups.add(() => sh('ip route del local 203.0.115.0/24 dev lo; ip addr del 203.0.115.2/32 dev lo'));
    sh('ip addr add 203.0.115.1/32 dev lo');
    await start(/Services and their addresses/, { uid: NOBODY, flags });
    await answers(first);
    sh('ip addr add 203.0.115.2/32 dev lo');
    await answers(second);
    sh('ip addr del 203.0.115.1/32 dev lo');
    await answers(first, 'ECONNREFUSED');
    await answers(second);
  });

  test('bindAddress may not be 127.0.0.1 or ::1, but another loopback address', async () => {
    const args = ['--proxy-mode=userspace', `--manifests=${await manifests()}`, '--init-only'];
    const common = [...args, '--hostname-override=n1', '--conntrack-max-per-core=0'];
    for (const address of ['127.0.0.1', '::1']) {
      const { code, stderr } = await run(kubeProxy, [...common, `--bind-address=${address}`]);
      assert.equal(code, 1);
      assert.match(
        unescaped(stderr),
        new RegExp(`bindAddress "${address}" cannot be used in userspace mode`),
      );
    }
    const { code, stderr } = await run(kubeProxy, [...common, '--bind-address=127.0.0.2']);
    assert.equal(code, 0, stderr);
  });

  test('an invalid port range or idle time is an error that names the field', async () => {
    const common = ['--proxy-mode=userspace', `--manifests=${await manifests()}`, '--init-only'];
    const bad: [string, RegExp][] = [
      ['--proxy-port-range=10-9', /portRange: port range "10-9" ends before it begins/],
      ['--udp-timeout=0s', /udpIdleTimeout: Invalid value: "0s": must be greater than 0/],
      ['--udp-timeout=soon', /udpIdleTimeout: time: invalid duration/],
    ];
    for (const [flag, text] of bad) {
      const args = [...common, '--hostname-override=n1', '--conntrack-max-per-core=0', flag];
      const { code, stderr } = await run(kubeProxy, args);
      assert.equal(code, 1);
      assert.match(unescaped(stderr), text);
    }
  });

  test('--cleanup removes five jumps and five chains of upstream in both families, and nothing else', async () => {
    const portals = '-m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules"';
    const ports =
      '-m addrtype --dst-type LOCAL -m comment --comment "handle service NodePorts; NOTE: this must be the last rule in the chain"';
    const nonLocal = '-m comment --comment "Ensure that non-local NodePort traffic can flow"';
    for (const program of ['iptables', 'ip6tables']) {
      for (const chain of ['PORTALS-CONTAINER', 'PORTALS-HOST', 'NODEPORT-CONTAINER', 'NODEPORT-HOST']) {
        sh(`${program} -t nat -N KUBE-${chain}`);
      }
      sh(`${program} -N KUBE-NODEPORT-NON-LOCAL`);
      sh(`${program} -t nat -I PREROUTING ${portals} -j KUBE-PORTALS-CONTAINER`);
      sh(`${program} -t nat -I OUTPUT ${portals} -j KUBE-PORTALS-HOST`);
      sh(`${program} -t nat -A PREROUTING ${ports} -j KUBE-NODEPORT-CONTAINER`);
      sh(`${program} -t nat -A OUTPUT ${ports} -j KUBE-NODEPORT-HOST`);
      sh(`${program} -I INPUT ${nonLocal} -j KUBE-NODEPORT-NON-LOCAL`);
      sh(`${program} -t nat -A KUBE-PORTALS-CONTAINER -p tcp --dport 80 -j REDIRECT --to-ports 40000`);
      sh(`${program} -A INPUT -m comment --comment mine -j ACCEPT`);
    }
    for (let i = 0; i < 2; i++) {
      const { code, stderr } = await run(kubeProxy, ['--cleanup']);
      assert.equal(code, 0, stderr);
      for (const program of ['iptables', 'ip6tables']) {
        assert.doesNotMatch(sh(`${program}-save`), /KUBE-(PORTALS|NODEPORT)/);
        assert.match(sh(`${program}-save`), /--comment mine/);
      }
    }
  });
});
