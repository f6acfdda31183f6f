/**
 * Recorded clusters on a real kernel, each replacing the one before. The real kernel must hold the same as the kernel in
 * memory, which another test compares with upstream, and upstream's own iptables rules. Only the largest clusters run
 * through the whole program, because it takes many seconds to start in an emulated machine.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { IpvsKernel } from '../../src/backends/ipvs/kernel.ts';
import { type LinuxIpvs, openLinuxIpvs } from '../../src/backends/ipvs/linux-kernel.ts';
import { ipvsOpeners } from '../../src/kernel/ipvs/openers.ts';
import { runProgram } from '../../src/kernel/program.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { silentLogger } from '../../src/obs/log.ts';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { runInNode } from '../contract/node-commands.ts';
import { eventuallyEqual } from '../eventually.ts';
import { plansOf } from '../plan/recorded-cluster.ts';
import { kubeProxy, run } from '../program/run.ts';
import { Site } from '../program/started.ts';
import { FakeKernel } from './fake-kernel.ts';
import { ipvsEngine } from './harness.ts';
import { boundAddresses } from './node-state.ts';
import { ipvsUnavailable } from './on-ipvs-kernel.ts';
import {
  interfaceAddresses,
  type RecordedIpvsCluster,
  recordedIpvsClusters,
  savedServers,
  savedSets,
  settingsOf,
} from './recorded-cluster.ts';
import { recordedRules, type SavedRules } from './saved-rules.ts';

const programs = { 4: 'iptables-save', 6: 'ip6tables-save' } as const;
const tables = ['nat', 'filter'] as const;
const throughTheProgram = ['cluster-006.json', 'cluster-007.json'];

/** The state of ipvs mode in the kernel. */
interface State {
  readonly servers: readonly string[];
  readonly sets: readonly string[];
  readonly addresses: readonly string[];
  readonly rules: Readonly<Record<string, SavedRules>>;
}

const skip = labUnavailable() ?? (await ipvsUnavailable()) ?? false;
if (!skip) enterNamespace(import.meta.url);

describe('recorded clusters on a kernel with ip_vs', { skip }, () => {
  let linux: LinuxIpvs;
  before(async () => {
    const open = await ipvsOpeners(systemClock);
    linux = await openLinuxIpvs({ open, run: runProgram, clock: systemClock, logger: silentLogger });
    await runInNode('ip', 'link', 'add', 'kpt-node', 'type', 'veth', 'peer', 'name', 'kpt-peer');
    for (const ip of interfaceAddresses.filter((ip) => !/^(127|::1|fe80)/.test(ip))) {
      const more = ip.includes(':') ? ['nodad'] : [];
      await runInNode('ip', 'address', 'add', ip, 'dev', 'kpt-node', ...more);
    }
  });
  after(() => linux?.close());

  for (const { name, cluster } of recordedIpvsClusters()) {
    const isWhole = throughTheProgram.includes(name);
    test(`${name} through the ${isWhole ? 'program' : 'backend'}`, async () => {
      const fake = new FakeKernel();
      fake.onNode = interfaceAddresses;
      await sync(cluster, () => fake.kernel);
      const wanted = wantedState(cluster, fake);
      if (isWhole) return replay(cluster, wanted);
      await sync(cluster, (family) => linux.kernelOf(family));
      assert.deepEqual(await currentState(), wanted);
    });
  }

  test('clean-up removes the last recorded cluster', async () => {
    // Clean-up starts dozens of programs, and each takes long to start in an emulated machine.
    const { code, stderr } = await run(kubeProxy, ['--cleanup'], { timeout: paced(60_000) });
    assert.equal(code, 0, stderr);
    assert.equal(await runInNode('ipvsadm', '-Sn'), '');
    assert.equal(await runInNode('ipset', 'list', '-n'), '');
    assert.doesNotMatch(await runInNode('ip', 'link'), /kube-ipvs0/);
    for (const program of Object.values(programs)) assert.doesNotMatch(await runInNode(program), /KUBE-/);
  });
});

async function replay(cluster: RecordedIpvsCluster, wanted: State): Promise<void> {
  const site = await Site.open();
  try {
    site.api.put('nodes', { ...cluster.node });
    for (const object of cluster.objects) {
      site.api.put(object.kind === 'Service' ? 'services' : 'endpointSlices', { ...object });
    }
    const proxy = await site.start(site.writeConfig(cluster.config));
    await eventuallyEqual('the state of the kernel in memory', currentState, wanted, {
      everyMs: 50,
      onTimeout: () => proxy.stderr,
    });
  } finally {
    await site.close();
  }
}

async function sync(cluster: RecordedIpvsCluster, kernelOf: (family: Family) => IpvsKernel): Promise<void> {
  for (const family of families) {
    const backend = ipvsEngine(
      {
        settings: settingsOf(cluster, family),
        kernel: kernelOf(family),
        metrics: { iptablesRestoreFailures: { inc: () => assert.fail('rules were refused') } },
        logger: silentLogger,
        clock: systemClock,
      },
      () => assert.fail('something failed'),
    );
    const plans = new Map((await plansOf(cluster, family)).map((plan) => [plan.port.key, plan]));
    const result = await backend.sync({ plans, changed: 'all', serviceCIDRs: [], totalEndpoints: 0 });
    assert.deepEqual(result.refused, []);
    await backend.close();
  }
}

/** The state of the kernel in memory, with the rules that upstream wrote. */
function wantedState(cluster: RecordedIpvsCluster, fake: FakeKernel): State {
  return {
    servers: savedServers(fake).sort(),
    sets: savedSets(fake).sort(),
    addresses: [...(fake.bound ?? [])].sort(),
    rules: rulesOf((table, digit) => cluster.expect[`${table}${digit}`]),
  };
}

async function currentState(): Promise<State> {
  const dumps = {
    4: (await runInNode(programs[4])).split('\n'),
    6: (await runInNode(programs[6])).split('\n'),
  };
  const sets = await lines('ipset', 'save');
  return {
    servers: await lines('ipvsadm', '-Sn'),
    sets: sets.map((line) => line.replace(/ (hashsize|bucketsize|initval) \S+/g, '')).sort(),
    addresses: await boundAddresses().catch(() => []),
    rules: rulesOf((table, digit) => rulesOfTable(dumps[digit], table)),
  };
}

function rulesOf(
  linesOf: (table: (typeof tables)[number], digit: 4 | 6) => readonly string[],
): State['rules'] {
  const entries = ([4, 6] as const).flatMap((digit) =>
    tables.map((table) => [`${table}${digit}`, sorted(recordedRules(linesOf(table, digit)))] as const),
  );
  return Object.fromEntries(entries);
}

/** Sorts chains, whose order has no meaning. */
function sorted(rules: SavedRules): SavedRules {
  return Object.fromEntries(Object.entries(rules).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The lines of one table that are about chains of Kubernetes, and all rules. */
function rulesOfTable(dump: readonly string[], table: string): string[] {
  const from = dump.indexOf(`*${table}`);
  if (from < 0) return [];
  const lines = dump.slice(from, dump.indexOf('COMMIT', from));
  return lines.filter((line) => line.startsWith(':KUBE-') || line.startsWith('-A '));
}

async function lines(command: string, ...args: readonly string[]): Promise<string[]> {
  const output = await runInNode(command, ...args);
  return output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .sort();
}
