import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KernelTables } from '../../src/backends/iptables/kernel-tables.ts';
import type { Tables } from '../../src/backends/iptables/tables.ts';
import { WrittenRules } from '../../src/backends/iptables/written-rules.ts';
import { Commands } from '../../src/kernel/iptables/commands.ts';
import { runProgram } from '../../src/kernel/program.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Family, families } from '../../src/model/ip.ts';
import { silentLogger } from '../../src/obs/log.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { planOf } from '../cluster/plans.ts';
import { planChange } from './arbitraries.ts';
import { FakeTables } from './fake-tables.ts';
import { type Flavour, flavourUnavailable } from './flavours.ts';
import { SyncHarness, settingsOf } from './harness.ts';
import { chainsOf, savedForm, tableOf } from './normalise.ts';

/** Enough to create, change and remove chains of every kind; more would take long. */
const rounds = 25;
const seed = 42;

inNamespace(import.meta.url, () => {
  for (const flavour of ['legacy', 'nft'] as const) {
    const skip = flavourUnavailable(flavour) ?? false;
    describe(`iptables-${flavour}`, { skip }, () => {
      for (const family of families) {
        test(`${family}: partial syncs leave what a full one writes`, () =>
          comparePartialSyncs(flavour, family));
      }
      test('a service port that the kernel refuses is left out of the rules', () => refuseOne(flavour));
      test('a stale chain is emptied when a rule of another program jumps to it', () => keepOne(flavour));
    });
  }
});

async function comparePartialSyncs(flavour: Flavour, family: Family): Promise<void> {
  const harness = kernelHarness(flavour, family);
  const model = new SyncHarness(new FakeTables(), settingsOf(family));
  model.tables.counters = { invalidDropped: false, localhostAccepted: false };
  const plans = new Map<number, ServicePlan>();
  await harness.full();
  await model.full();
  const changes = fc.sample(planChange(family), { numRuns: 2 * rounds, seed });
  for (const [at, { which, to }] of changes.entries()) {
    if (to) plans.set(which, to);
    else plans.delete(which);
    if (at % 2 === 0) continue;
    await Promise.all([harness.change(...plans.values()), model.change(...plans.values())]);
    assert.deepEqual(ruleset(flavour, family), modelled(model.tables, family), `round ${at}`);
  }
  const before = ruleset(flavour, family);
  await harness.again();
  assert.deepEqual(ruleset(flavour, family), before);
  assert.deepEqual(harness.complaints, []);
}

/** The rule names a missing nfacct counter, so the kernel refuses it; with nf_tables the error names its line. */
async function refuseOne(flavour: Flavour): Promise<void> {
  const harness = kernelHarness(flavour, 'IPv4', { localhostAccepted: true, invalidDropped: false });
  const plain = Array.from({ length: 6 }, (_, i) =>
    planOf({ name: `web-${i}`, clusterIP: `10.96.0.${i + 1}` }, [{ ip: `10.244.0.${i + 1}` }]),
  );
  const counted = planOf({ name: 'counted', clusterIP: '10.96.0.99', nodePort: 30080 }, [
    { ip: '10.244.0.9' },
  ]);
  assert.deepEqual(await harness.full(...plain, counted), [counted.port.key]);
  const { nat } = ruleset(flavour, 'IPv4');
  assert.equal(nat['KUBE-SERVICES']?.length, plain.length + 1);
  assert.ok(!Object.keys(nat).includes('KUBE-SVC-TRIAL'));
  assert.deepEqual(await harness.change(...plain), []);
}

async function keepOne(flavour: Flavour): Promise<void> {
  const harness = kernelHarness(flavour, 'IPv4');
  sh(`iptables-${flavour} -t nat -N KUBE-SVC-OLD && iptables-${flavour} -t nat -A OUTPUT -j KUBE-SVC-OLD`);
  sh(`iptables-${flavour} -t nat -A KUBE-SVC-OLD -j RETURN && iptables-${flavour} -t nat -N KUBE-SEP-OLD`);
  const plan = planOf({ clusterIP: '10.96.0.1' }, [{ ip: '10.244.0.1' }]);
  assert.deepEqual(await harness.full(plan), []);
  const { nat } = ruleset(flavour, 'IPv4');
  assert.deepEqual(nat['KUBE-SVC-OLD'], []);
  assert.equal(nat['KUBE-SEP-OLD'], undefined);
  sh(`iptables-${flavour} -t nat -D OUTPUT -j KUBE-SVC-OLD`);
  await harness.again();
  assert.equal(ruleset(flavour, 'IPv4').nat['KUBE-SVC-OLD'], undefined);
}

function kernelHarness(
  flavour: Flavour,
  family: Family,
  counters = { invalidDropped: false, localhostAccepted: false },
): SyncHarness<Tables> {
  const commands = new Commands({
    family,
    run: runProgram,
    clock: systemClock,
    logger: silentLogger,
    variant: flavour,
  });
  const kernel = new KernelTables({
    commands,
    written: new WrittenRules(),
    counters: undefined,
    logger: silentLogger,
    flavour,
  });
  const tables: Tables = {
    // Few chains, so that the few services of a test need several restores.
    ...(flavour === 'nft' && { chainsPerRestore: 4 }),
    ensureJumps: () => kernel.ensureJumps(),
    ensureCounters: async () => counters,
    restore: (input) => kernel.restore(input),
  };
  return new SyncHarness(tables, settingsOf(family));
}

type Ruleset = Record<'filter' | 'nat', Record<string, readonly string[]>>;

/** The rules in the kernel, of Kubernetes chains only. */
function ruleset(flavour: Flavour, family: Family): Ruleset {
  const saved = sh(`${family === 'IPv4' ? 'iptables' : 'ip6tables'}-${flavour}-save`);
  return { filter: ours(chainsOf(tableOf(saved, 'filter'))), nat: ours(chainsOf(tableOf(saved, 'nat'))) };
}

/** The rules that the kernel should hold, as iptables-save prints them. */
function modelled({ tables }: FakeTables, family: Family): Ruleset {
  const saved = (chains: ReadonlyMap<string, readonly string[]>) =>
    ours(new Map([...chains].map(([chain, rules]) => [chain, rules.map((rule) => savedForm(rule, family))])));
  return { filter: saved(tables.filter), nat: saved(tables.nat) };
}

function ours(chains: ReadonlyMap<string, readonly string[]>): Record<string, readonly string[]> {
  const kept = [...chains].filter(([chain]) => chain.startsWith('KUBE-'));
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}
