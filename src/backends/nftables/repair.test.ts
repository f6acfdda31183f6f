import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { FakeClock } from '../../../test/fake-clock.ts';
import { nftablesEngine } from '../../../test/nftables/engine.ts';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import { plainSettings } from '../../../test/nftables/settings.ts';
import type { NftEvent } from '../../kernel/nft/events.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { SyncRequest } from '../backend.ts';
import type { SyncEngine } from '../engine.ts';
import { type SetName, tableOf, valueKindOf } from './layout.ts';
import type { Believed } from './prepare.ts';

/** A kernel that notes which sets are read. */
class WatchedNft extends FakeNft {
  read: string[] = [];

  override listElements(...args: Parameters<FakeNft['listElements']>): Promise<void> {
    this.read.push(args[0].name);
    return super.listElements(...args);
  }
}

class Fixture {
  readonly nft = new WatchedNft();
  readonly backend: SyncEngine<Believed>;

  constructor(endpointsToRead?: number) {
    this.backend = nftablesEngine({
      settings: plainSettings,
      client: this.nft,
      list: async () => ['192.0.2.10'],
      clock: new FakeClock(),
      ...(endpointsToRead === undefined ? {} : { endpointsToRead }),
    });
  }

  /** The kernel reports that another program changed rules, and elements of these sets. */
  suspect(...sets: SetName[]): void {
    const table = tableOf('IPv4');
    const chain = { table, name: 'dispatch' };
    this.nft.emit(
      { portId: 7, type: 'delete', kind: 'rule', object: { chain, exprs: [] } },
      ...sets.map((name): NftEvent => {
        return { portId: 7, type: 'delete', kind: 'element', set: { table, name }, elements: [] };
      }),
      { portId: 7, type: 'generation', id: 5, pid: 42, processName: 'nft' },
    );
  }

  /** Gives the sets that were read for it. */
  async sync(
    plans: ReadonlyMap<string, ServicePlan>,
    changed: SyncRequest['changed'],
    departed: SyncRequest['departed'] = new Map(),
  ): Promise<string[]> {
    this.nft.read = [];
    const serviceCIDRs = ['10.96.0.0/16'];
    await this.backend.sync({ plans, changed, serviceCIDRs, totalEndpoints: 0, departed });
    return this.nft.read;
  }

  /** Everything in the table. Which number a chain has depends on history: its verdict stands for it. */
  get elements(): Record<string, string[]> {
    const handlers = this.nft.elementsOf('handlers');
    const describe = (set: SetName) =>
      [...this.nft.elementsOf(set)].map(([key, element]) => {
        if (set === 'handlers') return JSON.stringify(element.verdict);
        if (valueKindOf(set) !== 'number') return JSON.stringify([key, element]);
        const verdict = handlers.get(element.data?.join() ?? '')?.verdict ?? assert.fail('an unknown number');
        return JSON.stringify([key, element.comment, verdict]);
      });
    return Object.fromEntries(sets.map((set) => [set, describe(set).sort()]));
  }
}

const sets = [
  'frontends',
  'nodeports',
  'handlers',
  'endpoints',
  'nodeport-endpoints',
  'refused',
  'guarded',
  'cluster-addresses',
  'hairpins',
  'node-addresses',
  'service-ranges',
  'sources-24',
  'sticky-services',
  'sticky-slots',
  'sticky-members',
  'departed',
] as const satisfies SetName[];

const service = (n: number, endpoints: number): ServicePlan =>
  planOf(
    {
      name: `s${n}`,
      clusterIP: `10.96.0.${n}`,
      nodePort: n % 2 ? 30_000 + n : 0,
      loadBalancerVIPs: n % 3 ? [] : [`198.51.100.${n}`],
      sourceRanges: n % 3 ? [] : ['203.0.113.0/24'],
      affinitySeconds: n % 4 ? 0 : 60,
    },
    Array.from({ length: endpoints }, (_, e) => ({ ip: `10.244.${n}.${e}`, local: e === 0 })),
  );
const six = () => plansByKey(...[1, 2, 3, 4, 5, 6].map((n) => service(n, n % 5)));

const departedOnes = (numbers: readonly number[]): SyncRequest['departed'] =>
  new Map(numbers.map((n) => [`10.244.9.${n}:80`, { ip: `10.244.9.${n}`, port: 80 }]));

test('when only rules are suspect, rules are written and no set is read', async () => {
  const fixture = new Fixture();
  const plans = six();
  await fixture.sync(plans, 'all');
  fixture.suspect();
  assert.deepEqual(await fixture.sync(plans, new Set()), []);
  const { batch } = fixture.nft.batches.at(-1) ?? assert.fail();
  assert.ok(batch.operations.some(({ kind }) => kind === 'rule'));
  assert.ok(!batch.operations.some(({ kind }) => kind === 'element'));
});

test('a full sync without suspects reads every set', async () => {
  const fixture = new Fixture();
  await fixture.sync(six(), 'all');
  assert.ok((await fixture.sync(six(), 'all')).length > 10);
});

test('what is missing as a whole is found by reading everything', async () => {
  const fixture = new Fixture();
  const plans = six();
  await fixture.sync(plans, 'all');
  const { elements } = fixture;
  fixture.nft.wipe();
  fixture.suspect('frontends');
  await fixture.sync(plans, new Set());
  assert.deepEqual(fixture.elements, elements);
});

test('endpoints that are too many to read are written anew', async () => {
  const fixture = new Fixture(3);
  const plans = six();
  await fixture.sync(plans, 'all');
  const { elements } = fixture;
  fixture.nft.elementsOf('endpoints').clear();
  fixture.suspect('endpoints');
  const read = await fixture.sync(plans, new Set());
  assert.ok(!read.includes('endpoints'));
  assert.deepEqual(fixture.elements, elements);
});

test('whatever was done to elements and whatever changed meanwhile, the table becomes what it should be', async () => {
  const damage = fc.uniqueArray(
    fc.record({ set: fc.constantFrom(...sets), every: fc.integer({ min: 1, max: 4 }) }),
    { selector: ({ set }) => set, minLength: 1, maxLength: 4 },
  );
  const changes = fc.array(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: -1, max: 4 })), {
    maxLength: 4,
  });
  const departed = fc.subarray([1, 2, 3, 4]).map(departedOnes);
  await fc.assert(
    fc.asyncProperty(damage, changes, departed, departed, async (damaged, changed, before, after) => {
      const [hurt, well] = [new Fixture(), new Fixture()];
      const plans = new Map<string, ServicePlan>(six());
      for (const fixture of [hurt, well]) await fixture.sync(plans, 'all', before);
      for (const { set, every } of damaged) harm(hurt.nft, set, every);
      for (const [n, endpoints] of changed) {
        const plan = service(n, Math.max(0, endpoints));
        if (endpoints < 0) plans.delete(plan.port.key);
        else plans.set(plan.port.key, plan);
      }
      const keys = new Set(changed.map(([n]) => service(n, 0).port.key));
      await well.sync(plans, keys, after);
      hurt.suspect(...damaged.map(({ set }) => set));
      const read = await hurt.sync(plans, keys, after);
      assert.deepEqual(hurt.elements, well.elements);
      assert.deepEqual([...hurt.nft.setNames].sort(), [...well.nft.setNames].sort());
      assert.ok(read.length <= damaged.length);
    }),
    { numRuns: 60 },
  );
});

/** Takes every so many-th element out of a set, and puts one in that nobody wants. */
function harm(nft: FakeNft, set: SetName, every: number): void {
  const elements = nft.elementsOf(set);
  const [sample] = elements.values();
  for (const [i, key] of [...elements.keys()].entries()) if (i % every === 0) elements.delete(key);
  if (!sample || sample.intervalEnd) return;
  const key = sample.key.map((byte) => 255 - byte);
  elements.set(key.join(), { ...sample, key });
}
