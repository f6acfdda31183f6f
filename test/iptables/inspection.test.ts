import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Difference, Inspection, Packet } from '../../src/backends/inspection.ts';
import { Canary } from '../../src/backends/iptables/canary.ts';
import { openInspection } from '../../src/backends/iptables/inspection.ts';
import { KernelTables } from '../../src/backends/iptables/kernel-tables.ts';
import type { Tables } from '../../src/backends/iptables/tables.ts';
import { WrittenRules } from '../../src/backends/iptables/written-rules.ts';
import { Commands } from '../../src/kernel/iptables/commands.ts';
import { runProgram } from '../../src/kernel/program.ts';
import { systemFiles } from '../../src/kernel/system-files.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { silentLogger } from '../../src/obs/log.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { planOf, plansByKey } from '../cluster/plans.ts';
import { type Flavour, flavourUnavailable } from './flavours.ts';
import { SyncHarness, settingsOf } from './harness.ts';

const web: Readonly<Record<Family, ServicePlan>> = {
  IPv4: planOf({ clusterIP: '10.96.0.1', nodePort: 30080, affinitySeconds: 600 }, [
    { ip: '10.244.0.1', local: true },
    { ip: '10.244.1.1' },
    { ip: '10.244.1.2' },
  ]),
  IPv6: planOf({ clusterIP: 'fd00:96::1', nodePort: 30080, affinitySeconds: 600 }, [
    { ip: 'fd00:244::1', local: true },
    { ip: 'fd00:244:0:1::1' },
    { ip: 'fd00:244:0:1::2' },
  ]),
};
const empty = planOf({ name: 'empty', clusterIP: '10.96.0.20' });

inNamespace(import.meta.url, () => {
  for (const flavour of ['legacy', 'nft'] as const) {
    describe(`iptables-${flavour}`, { skip: flavourUnavailable(flavour) ?? false }, () => {
      test('an inspection writes nothing', () => lookAtNothing(flavour));
      for (const family of families) {
        test(`${family}: an inspection reads back where packets go`, () => askSome(flavour, family));
        test(`${family}: an inspection names every difference`, () => tamper(flavour, family));
      }
      test('a rule of unknown meaning is reported as unknown', () => confuse(flavour));
    });
  }
});

async function lookAtNothing(flavour: Flavour): Promise<void> {
  sh(`iptables-${flavour} -t nat -F 2>/dev/null; true`);
  const before = sh('nft list ruleset; cat /proc/net/ip_tables_names 2>/dev/null; true');
  await inspecting(flavour, 'IPv4', async (inspection) => {
    assert.equal((await inspection.ask(packetTo('10.96.0.1', 80))).fate.action, 'pass');
    const found = await inspection.compare(requestOf([web.IPv4]));
    assert.ok(found.some(({ kind, service }) => kind === 'chain' && service === 'default/web/TCP'));
    assert.ok(found.every(({ found: there }) => there === undefined));
  });
  assert.equal(sh('nft list ruleset; cat /proc/net/ip_tables_names 2>/dev/null; true'), before);
}

async function askSome(flavour: Flavour, family: Family): Promise<void> {
  await synced(flavour, family, [web[family]]);
  const { clusterIP } = web[family].port;
  const [pod, other] = family === 'IPv4' ? ['10.244.0.1', '192.0.2.9'] : ['fd00:244::1', '2001:db8::9'];
  await inspecting(flavour, family, async (inspection) => {
    const fromPod = await inspection.ask({ ...packetTo(clusterIP, 80), family, source: pod });
    assert.equal(fromPod.fate.action, 'forward');
    if (fromPod.fate.action !== 'forward') return;
    const { targets, affinitySeconds } = fromPod.fate;
    assert.equal(affinitySeconds, 600);
    assert.deepEqual(
      targets.map(({ endpoint, masquerade }) => [endpoint, masquerade]),
      web[family].cluster.map(({ id, ip }) => [id, ip === pod]),
    );
    for (const { probability } of targets) assert.ok(Math.abs(probability - 1 / 3) < 1e-6);
    const outside = await inspection.ask({ ...packetTo(clusterIP, 80), family, source: other });
    assert.ok(outside.fate.action === 'forward' && outside.fate.targets.every((target) => target.masquerade));
    const program = family === 'IPv4' ? 'iptables' : 'ip6tables';
    for (const line of outside.evidence.filter((text) => text.startsWith('-t '))) {
      const [, table = '', rule = ''] = /^-t (\S+) (.*)$/.exec(line) ?? [];
      assert.ok(sh(`${program}-${flavour}-save -t ${table}`).split('\n').includes(rule), line);
    }
  });
}

async function tamper(flavour: Flavour, family: Family): Promise<void> {
  await synced(flavour, family, [web[family]]);
  const program = `${family === 'IPv4' ? 'iptables' : 'ip6tables'}-${flavour}`;
  await inspecting(flavour, family, async (inspection) => {
    const compare = () => inspection.compare(requestOf([web[family]]));
    assert.deepEqual(await compare(), []);
    const rule = sh(`${program} -t nat -S | grep -m 1 -- '-A KUBE-SVC-.*statistic'`).trim();
    sh(`${program} -t nat ${rule.replace('-A', '-D')}`);
    const [, chain = ''] = rule.split(' ');
    assert.deepEqual((await compare()).map(briefly), [`default/web/TCP rule nat ${chain} missing`]);
    const broken = await inspection.ask({
      ...packetTo(web[family].port.clusterIP, 80),
      family,
      source: web[family].cluster[0]?.ip ?? '',
    });
    assert.ok(broken.fate.action === 'forward' && broken.fate.targets.length === 2);
    sh(`${program} -t nat -A ${chain} -j RETURN`);
    sh(`${program} -t nat -D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES`);
    sh(`${program} -t nat -N KUBE-SVC-OLD`);
    sh(`${program} -t filter -F KUBE-FORWARD`);
    sh(`${program} -t mangle -X KUBE-PROXY-CANARY`);
    assert.deepEqual((await compare()).map(briefly).sort(), [
      `default/web/TCP rule nat ${chain} missing`,
      'undefined chain mangle KUBE-PROXY-CANARY missing',
      'undefined chain nat KUBE-SVC-OLD extra',
      'undefined jump nat PREROUTING missing',
      'undefined rule filter KUBE-FORWARD missing',
      'undefined rule filter KUBE-FORWARD missing',
      'undefined rule filter KUBE-FORWARD missing',
      `undefined rule nat ${chain} extra`,
    ]);
    await synced(flavour, family, [web[family]]);
    assert.deepEqual(await compare(), []);
  });
}

async function confuse(flavour: Flavour): Promise<void> {
  await synced(flavour, 'IPv4', [empty, web.IPv4]);
  sh(`iptables-${flavour} -t nat -I KUBE-SERVICES -d 10.96.0.1 -m ttl --ttl-eq 3 -j RETURN`);
  await inspecting(flavour, 'IPv4', async (inspection) => {
    await assert.rejects(
      inspection.ask(packetTo('10.96.0.1', 80)),
      /not understood: -m ttl --ttl-eq 3, in the rule/,
    );
    // It is not about that address.
    assert.equal((await inspection.ask(packetTo('10.96.0.20', 80))).fate.action, 'reject');
  });
  await synced(flavour, 'IPv4', [empty]);
}

async function synced(flavour: Flavour, family: Family, plans: readonly ServicePlan[]): Promise<void> {
  const commands = commandsOf(flavour, family);
  const tables = new KernelTables({
    commands,
    written: new WrittenRules(),
    counters: undefined,
    logger: silentLogger,
    flavour,
  });
  const harness = new SyncHarness<Tables>(tables, settingsOf(family));
  assert.deepEqual(await harness.full(...plans), []);
  const nothing = () => {};
  const clock = systemClock;
  await new Canary({
    commands,
    clock,
    logger: silentLogger,
    interval: 60_000,
    onPlanted: nothing,
    onLost: nothing,
  }).plant();
}

async function inspecting(
  flavour: Flavour,
  family: Family,
  look: (inspection: Inspection) => Promise<void>,
): Promise<void> {
  const inspection = await openInspection({
    settings: settingsOf(family),
    commands: commandsOf(flavour, family),
    files: systemFiles,
    clock: systemClock,
    logger: silentLogger,
  });
  try {
    await look(inspection);
  } finally {
    await inspection.close();
  }
}

function commandsOf(variant: Flavour, family: Family): Commands {
  return new Commands({ family, run: runProgram, clock: systemClock, logger: silentLogger, variant });
}

function packetTo(destination: string, port: number): Packet {
  const origin = { interface: 'eth0' };
  return { family: 'IPv4', protocol: 'TCP', source: '192.0.2.9', destination, port, origin };
}

function requestOf(plans: readonly ServicePlan[]) {
  return { plans: plansByKey(...plans), serviceCIDRs: [], totalEndpoints: 0 };
}

function briefly({ service, kind, object, wanted }: Difference): string {
  return `${service} ${kind} ${object} ${wanted === undefined ? 'extra' : 'missing'}`;
}
