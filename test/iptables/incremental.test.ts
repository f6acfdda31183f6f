import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { type PlanChange, planChange } from './arbitraries.ts';
import { FakeTables } from './fake-tables.ts';
import { fakeHarness, type SyncHarness } from './harness.ts';

type SyncKind = 'sync' | 'full' | 'failure' | 'refusal';
type Step =
  | { readonly kind: 'change'; readonly change: PlanChange }
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: SyncKind };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: planChange('IPv4').map((change): Step => ({ kind: 'change', change })) },
  { weight: 8, arbitrary: fc.constant<Step>({ kind: 'sync' }) },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ kind: 'full' }, { kind: 'failure' }, { kind: 'refusal' }) },
  {
    weight: 1,
    arbitrary: fc
      .subarray(['10.0.0.1', '10.0.0.2', '127.0.0.1'])
      .map((addresses): Step => ({ kind: 'addresses', addresses })),
  },
);
const steps = fc.array(step, { maxLength: 40, size: 'max' });

const settings = { nodePortAddresses: nodePortAddresses('IPv4', ['10.0.0.0/8']), localhostNodePorts: false };

interface Played {
  readonly harness: SyncHarness;
  readonly plans: readonly ServicePlan[];
}

/** Runs the steps; checks after every sync that the tables hold what a freshly started node would write. */
async function play(steps: readonly Step[], totalEndpoints = 0, chains?: number): Promise<Played> {
  const harness = fakeHarness('IPv4', settings, new FakeTables(chains));
  harness.totalEndpoints = totalEndpoints;
  const plans = new Map<number, ServicePlan>();
  for (const one of steps) {
    if (one.kind === 'change' && one.change.to) plans.set(one.change.which, one.change.to);
    else if (one.kind === 'change') plans.delete(one.change.which);
    else if (one.kind === 'addresses') harness.interfaceAddresses = async () => one.addresses;
    else await sync(harness, one.kind, [...plans.values()]);
  }
  await sync(harness, 'sync', [...plans.values()]);
  return { harness, plans: [...plans.values()] };
}

async function sync(harness: SyncHarness, kind: SyncKind, plans: readonly ServicePlan[]): Promise<void> {
  // Long enough to remove stale chains in a cluster of any size.
  await harness.clock.advance(30_001);
  if (kind === 'failure') {
    harness.tables.failNext.set('restore', new Error('no lock'));
    await harness.change(...plans).catch(() => undefined);
    harness.tables.failNext.clear();
    return;
  }
  if (kind === 'refusal')
    harness.tables.refuse.push({ text: 'DNAT --to-destination 10.244.0.1:', at: 'COMMIT' });
  const refused = await (kind === 'full' ? harness.full(...plans) : harness.change(...plans));
  harness.tables.refuse.length = 0;
  if (kind === 'refusal') await harness.again();
  else assert.deepEqual(refused, []);
  await assertFresh(harness, plans);
}

async function assertFresh(harness: SyncHarness, plans: readonly ServicePlan[]): Promise<void> {
  const fresh = fakeHarness('IPv4', settings);
  fresh.totalEndpoints = harness.totalEndpoints;
  fresh.interfaceAddresses = harness.interfaceAddresses;
  await fresh.full(...plans);
  assert.deepEqual(harness.tables.contents, fresh.tables.contents);
  for (const table of ['filter', 'nat']) {
    assert.equal(harness.metrics.get(`total ${table}`), fresh.metrics.get(`total ${table}`), table);
  }
}

for (const totalEndpoints of [0, 5000]) {
  for (const chains of [undefined, 3]) {
    const size = chains === undefined ? 'one restore' : 'restores of few chains';
    test(`partial syncs in ${size} leave what a full sync writes, with ${totalEndpoints} endpoints`, async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (steps) => void (await play(steps, totalEndpoints, chains))),
        { numRuns: 40 },
      );
    });
  }
}

test('a restarted node finds stale chains by itself', async () => {
  await fc.assert(
    fc.asyncProperty(steps, steps, async (earlier, later) => {
      const { harness } = await play(earlier);
      const { plans } = await play(later);
      const restarted = fakeHarness('IPv4', settings);
      Object.assign(restarted.tables.tables, harness.tables.tables);
      await restarted.full(...plans);
      await assertFresh(restarted, plans);
    }),
    { numRuns: 15 },
  );
});
