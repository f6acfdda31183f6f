import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FaultyPlan, planOf, plansByKey } from '../../../test/cluster/plans.ts';
import { FakeClock } from '../../../test/fake-clock.ts';
import { nftablesEngine } from '../../../test/nftables/engine.ts';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import { plainSettings } from '../../../test/nftables/settings.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import type { Element } from '../../kernel/nft/objects.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { SyncResult } from '../backend.ts';
import type { SyncEngine } from '../engine.ts';
import type { Believed } from './prepare.ts';

class Fixture {
  readonly nft = new FakeNft();
  readonly clock = new FakeClock();
  failures = 0;
  interfaceAddresses: () => Promise<string[]> = async () => ['192.0.2.10', '127.0.0.1', '203.0.113.1'];
  backend = this.newBackend();

  newBackend(endpointsToRead?: number): SyncEngine<Believed> {
    return nftablesEngine({
      settings: plainSettings,
      client: this.nft,
      list: () => this.interfaceAddresses(),
      metrics: {
        nftablesSyncFailures: { inc: () => this.failures++ },
        nftablesCleanupFailures: { inc() {} },
      },
      clock: this.clock,
      ...(endpointsToRead === undefined ? {} : { endpointsToRead }),
    });
  }

  /** Makes the backend notice that another program may have done anything to the table. */
  loseEvents(): void {
    this.nft.listener?.overrun();
  }

  sync(plans: Map<string, ServicePlan>, changed: 'all' | string[] = 'all'): Promise<SyncResult> {
    return this.backend.sync({
      plans,
      changed: changed === 'all' ? changed : new Set(changed),
      serviceCIDRs: ['10.96.0.0/16'],
      totalEndpoints: 0,
    });
  }

  /** Cluster IPs that are forwarded. */
  get frontends(): string[] {
    return [...this.nft.elementsOf('frontends').values()].map(({ key }) => key.slice(0, 4).join('.')).sort();
  }

  /** The chains that handle them, in the same order. */
  get chains(): (string | undefined)[] {
    const handlers = this.nft.elementsOf('handlers');
    return [...this.nft.elementsOf('frontends')].sort().map(([, { data }]) => {
      const verdict = handlers.get(data?.join() ?? '')?.verdict;
      return verdict && 'chain' in verdict ? verdict.chain : undefined;
    });
  }

  /** Element operations of the latest commit. */
  get lastElements(): number {
    const { batch } = this.nft.batches.at(-1) ?? assert.fail('nothing was committed');
    return batch.operations.reduce((sum, { elements }) => sum + (elements?.length ?? 0), 0);
  }
}

const service = (n: number, ...endpoints: number[]): ServicePlan =>
  planOf(
    { name: `s${n}`, clusterIP: `10.96.0.${n}` },
    endpoints.map((e) => ({ ip: `10.244.0.${e}` })),
  );
const three = () => plansByKey(service(1, 1), service(2, 2), service(3, 3));
/** Refuses the endpoint of one service. */
const refuse = (n: number) => (set: string, element: Element) =>
  set === 'endpoints' && element.key[3] === n ? 'bad endpoint' : undefined;

test('a sync is one transaction, and one without a change is none', async () => {
  const fixture = new Fixture();
  await fixture.sync(three());
  assert.equal(fixture.nft.batches.length, 1);
  assert.deepEqual(fixture.frontends, ['10.96.0.1', '10.96.0.2', '10.96.0.3']);
  await fixture.sync(three(), ['default/s1/TCP']);
  assert.equal(fixture.nft.batches.length, 1);
});

test('ServiceCIDRs and node addresses follow with any sync', async () => {
  const fixture = new Fixture();
  await fixture.sync(three());
  assert.deepEqual([...fixture.nft.elementsOf('node-addresses').keys()], ['192,0,2,10']);
  fixture.interfaceAddresses = async () => ['192.0.2.77'];
  await fixture.backend.sync({ plans: three(), changed: new Set(), serviceCIDRs: [], totalEndpoints: 0 });
  assert.deepEqual([...fixture.nft.elementsOf('node-addresses').keys()], ['192,0,2,77']);
  assert.equal(fixture.nft.elementsOf('service-ranges').size, 0);
});

test('when addresses cannot be listed, the known ones are used and the rest is programmed', async () => {
  const fixture = new Fixture();
  const { interfaceAddresses } = fixture;
  const unlistable = async () => {
    throw new Error('no netlink');
  };
  fixture.interfaceAddresses = unlistable;
  await fixture.sync(three());
  assert.equal(fixture.nft.elementsOf('node-addresses').size, 0);
  assert.equal(fixture.frontends.length, 3);
  fixture.interfaceAddresses = interfaceAddresses;
  await fixture.sync(three(), []);
  fixture.interfaceAddresses = unlistable;
  await fixture.sync(three(), []);
  assert.deepEqual([...fixture.nft.elementsOf('node-addresses').keys()], ['192,0,2,10']);
});

test('records of clients are read approximately, since packets add to them meanwhile', async () => {
  const fixture = new Fixture();
  const sticky = planOf({ name: 'sticky', clusterIP: '10.96.0.9', affinitySeconds: 60 }, [
    { ip: '10.244.0.9' },
  ]);
  const plans = plansByKey(sticky);
  await fixture.sync(plans);
  const approximate = new Map<string, boolean>();
  const { listElements } = fixture.nft;
  fixture.nft.listElements = (set, onElements, options) => {
    approximate.set(set.name, options?.isApproximate ?? false);
    return listElements.call(fixture.nft, set, onElements);
  };
  await fixture.sync(plans, 'all');
  const read = [...approximate].filter(([, isApproximate]) => isApproximate).map(([name]) => name);
  assert.deepEqual(read, ['clients']);
  assert.ok(approximate.size > 5);
});

describe('refused service ports', () => {
  for (const namesElements of [true, false]) {
    test(`refused service ports are left out by a kernel that ${namesElements ? 'names' : 'does not name'} elements`, async () => {
      const fixture = new Fixture();
      fixture.nft.namesElements = namesElements;
      fixture.nft.judge = refuse(2);
      const { refused } = await fixture.sync(three());
      assert.deepEqual(
        refused.map(({ key }) => key),
        ['default/s2/TCP'],
      );
      assert.match(refused[0]?.error.message ?? '', /bad endpoint/);
      assert.deepEqual(fixture.frontends, ['10.96.0.1', '10.96.0.3']);
    });
  }

  test('refused service ports stay reported until they change, and are then tried again', async () => {
    const fixture = new Fixture();
    fixture.nft.judge = refuse(2);
    await fixture.sync(three());
    const plans = new Map<string, ServicePlan>(plansByKey(service(1, 1, 9), service(2, 2), service(3, 3)));
    assert.equal((await fixture.sync(plans, ['default/s1/TCP'])).refused.length, 1);
    fixture.nft.judge = () => undefined;
    plans.set('default/s2/TCP', service(2, 4));
    assert.deepEqual((await fixture.sync(plans, ['default/s2/TCP'])).refused, []);
    assert.equal(fixture.frontends.length, 3);
  });

  test('refused service ports are found in a partial sync, too', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.nft.judge = refuse(4);
    const plans = plansByKey(...three().values(), service(4, 4), service(5, 5));
    const { refused } = await fixture.sync(plans, ['default/s4/TCP', 'default/s5/TCP']);
    assert.deepEqual(
      refused.map(({ key }) => key),
      ['default/s4/TCP'],
    );
    assert.ok(fixture.frontends.includes('10.96.0.5'));
  });

  test('all of many refused service ports are found', async () => {
    const fixture = new Fixture();
    fixture.nft.judge = (set, { key }) =>
      set === 'endpoints' && (key[3] ?? 0) > 20 ? 'bad endpoint' : undefined;
    const plans = plansByKey(...Array.from({ length: 60 }, (_, n) => service(n, n)));
    const { refused } = await fixture.sync(plans);
    assert.equal(refused.length, 39);
    assert.equal(
      refused.find(({ key }) => key === 'default/s42/TCP')?.error.message,
      'endpoints 10.96.0.42 . tcp . 80 . 0 : 10.244.0.42 . 8080: EINVAL (bad endpoint)',
    );
    assert.equal(fixture.frontends.length, 21);
  });

  test('a sync fails when too many service ports seem to be refused', async () => {
    const fixture = new Fixture();
    fixture.nft.judge = (set) => (set === 'endpoints' ? 'no endpoints today' : undefined);
    const plans = plansByKey(...Array.from({ length: 150 }, (_, n) => service(n, n)));
    await assert.rejects(fixture.sync(plans), /no endpoints today/);
  });
});

describe('failures', () => {
  test('a refusal that no service port explains fails the sync, and the next one reads the kernel', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.nft.judge = (set) => (set === 'cluster-addresses' ? 'no' : undefined);
    const plans = plansByKey(...three().values(), service(4, 4));
    await assert.rejects(fixture.sync(plans, ['default/s4/TCP']), NftError);
    assert.ok(fixture.failures > 0);
    assert.deepEqual(fixture.frontends, ['10.96.0.1', '10.96.0.2', '10.96.0.3']);
    fixture.nft.judge = () => undefined;
    await fixture.sync(plans, ['default/s4/TCP']);
    assert.equal(fixture.frontends.length, 4);
  });

  test('temporary errors never lead to a new table without affinity records', async () => {
    for (const errno of ['ENOMEM', 'ENOBUFS', 'EIO']) {
      const fixture = new Fixture();
      await fixture.sync(three());
      const { commit } = fixture.nft;
      const deleted: unknown[] = [];
      fixture.nft.commit = async (batch) => {
        deleted.push(...batch.operations.filter(({ verb, kind }) => verb === 'delete' && kind === 'table'));
        throw new NftError('commit', [{ errno, text: '' }]);
      };
      const plans = plansByKey(...three().values(), service(4, 4));
      await assert.rejects(fixture.sync(plans, ['default/s4/TCP']), NftError);
      assert.deepEqual(deleted, []);
      fixture.nft.commit = commit;
      await fixture.sync(plans, ['default/s4/TCP']);
      assert.equal(fixture.frontends.length, 4);
    }
  });

  test('an error of the socket fails the sync unchanged', async () => {
    const fixture = new Fixture();
    fixture.nft.interference = () => {
      throw new Error('socket closed');
    };
    await assert.rejects(fixture.sync(three()), /socket closed/);
  });

  test('a partial sync restores a table that another program deleted', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.nft.interference = () => fixture.nft.wipe();
    const plans = plansByKey(service(1, 1, 9), service(2, 2), service(3, 3));
    await fixture.sync(plans, ['default/s1/TCP']);
    assert.equal(fixture.frontends.length, 3);
    assert.equal(fixture.nft.elementsOf('endpoints').size, 4);
  });

  test('no service port is refused because another program wrote between reading and writing', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.nft.interference = () => fixture.nft.wipe();
    assert.deepEqual((await fixture.sync(three(), 'all')).refused, []);
    assert.equal(fixture.frontends.length, 3);
  });
});

describe('what is believed', () => {
  test('after a restart the table is read and only differences are written', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.backend = fixture.newBackend();
    await fixture.sync(three());
    assert.equal(fixture.lastElements, 0);
    fixture.nft.elementsOf('cluster-addresses').clear();
    fixture.backend = fixture.newBackend();
    await fixture.sync(three());
    assert.equal(fixture.lastElements, 3);
  });

  test('maps of many endpoints are filled again without being read', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.backend = fixture.newBackend(2);
    await fixture.sync(three());
    assert.equal(fixture.lastElements, 3);
    assert.equal(fixture.nft.elementsOf('endpoints').size, 3);
  });

  test('lost events during a sync make the next one read the table', async () => {
    const fixture = new Fixture();
    await fixture.sync(three());
    fixture.nft.interference = () => fixture.loseEvents();
    await fixture.sync(plansByKey(service(1, 1, 9), service(2, 2), service(3, 3)), ['default/s1/TCP']);
    fixture.nft.wipe();
    await fixture.sync(three(), []);
    assert.equal(fixture.frontends.length, 3);
  });
});

test('another number of endpoints, if any service has had it, moves no verdict', async () => {
  const fixture = new Fixture();
  await fixture.sync(plansByKey(service(1, 1, 2), service(2, 3)));
  await fixture.sync(plansByKey(service(1, 1), service(2, 3)), ['default/s1/TCP']);
  const { batch } = fixture.nft.batches.at(-1) ?? assert.fail();
  const sets = batch.operations.map(({ verb, kind, object }) =>
    kind === 'element' && 'name' in object ? `${verb} ${object.name}` : kind,
  );
  assert.deepEqual(sets.sort(), ['add frontends', 'delete endpoints', 'delete frontends']);
  assert.deepEqual(fixture.chains, ['cluster-pick-1', 'cluster-pick-1']);
});

test('a restart goes by the numbers that chains have, whatever order services come in', async () => {
  const fixture = new Fixture();
  await fixture.sync(plansByKey(service(1, 1), service(2, 1, 2), service(3, 1, 2, 3)));
  fixture.backend = fixture.newBackend();
  await fixture.sync(plansByKey(service(3, 1, 2, 3), service(2, 1), service(1, 1)));
  assert.deepEqual(fixture.chains, ['cluster-pick-1', 'cluster-pick-1', 'cluster-pick-3']);
  await fixture.sync(plansByKey(service(1, 1, 2), service(2, 1), service(3, 1, 2, 3)), ['default/s1/TCP']);
  assert.deepEqual(fixture.chains, ['cluster-pick-2', 'cluster-pick-1', 'cluster-pick-3']);
});

test('a chain stays within reach of packets until the commit that makes it idle is over', async () => {
  const fixture = new Fixture();
  await fixture.sync(plansByKey(service(1, 1, 2)));
  const before = fixture.nft.batches.length;
  fixture.backend = fixture.newBackend();
  await fixture.sync(plansByKey(service(1, 1)));
  const deletions = fixture.nft.batches
    .slice(before)
    .map(({ batch }) =>
      batch.operations.flatMap(({ verb, object }) =>
        verb === 'delete' && 'name' in object ? object.name : [],
      ),
    );
  assert.deepEqual(deletions, [['frontends', 'endpoints'], ['handlers'], ['cluster-pick-2']]);
});

test('chains that are no longer used are removed by a full sync', async () => {
  const fixture = new Fixture();
  await fixture.sync(plansByKey(service(1, 1, 2)));
  await fixture.sync(plansByKey(service(1, 1)), ['default/s1/TCP']);
  assert.ok(fixture.nft.chainNames.includes('cluster-pick-2'));
  await fixture.sync(plansByKey(service(1, 1)));
  assert.ok(!fixture.nft.chainNames.includes('cluster-pick-2'));
  assert.ok(fixture.nft.chainNames.includes('cluster-pick-1'));
  await fixture.sync(plansByKey(service(1, 1, 2)), ['default/s1/TCP']);
  assert.deepEqual(fixture.chains, ['cluster-pick-2']);
});

describe('chains that no service port needs', () => {
  const [one, two] = [service(1, 1), service(1, 1, 2)];
  const key = ['default/s1/TCP'];
  /** Without the fixed chains. */
  const sharedChains = ({ nft }: Fixture) => nft.chainNames.filter((name) => /\d/.test(name)).sort();
  const guardChains = ({ nft }: Fixture) =>
    nft.chainNames.filter((name) => name.endsWith('-pre-dnat')).sort();

  test('are removed a minute later, first from the handlers', async () => {
    const fixture = new Fixture();
    await fixture.sync(plansByKey(two));
    await fixture.sync(plansByKey(one), key);
    await fixture.clock.advance(59_000);
    assert.equal(fixture.nft.elementsOf('handlers').size, 2);
    await fixture.clock.advance(1500);
    assert.equal(fixture.nft.elementsOf('handlers').size, 1);
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1', 'cluster-pick-2']);
    await fixture.clock.advance(1000);
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1']);
    assert.equal(fixture.clock.pending, 0);
    await fixture.sync(plansByKey(two), key);
    assert.deepEqual(fixture.chains, ['cluster-pick-2']);
  });

  test('stay when one needs them again, also between the two steps', async () => {
    const fixture = new Fixture();
    await fixture.sync(plansByKey(two));
    await fixture.sync(plansByKey(one), key);
    await fixture.clock.advance(30_000);
    await fixture.sync(plansByKey(two), key);
    await fixture.clock.advance(40_000);
    assert.deepEqual(fixture.chains, ['cluster-pick-2']);
    await fixture.sync(plansByKey(one), key);
    await fixture.clock.advance(60_500);
    assert.equal(fixture.nft.elementsOf('handlers').size, 1);
    await fixture.sync(plansByKey(two), key);
    await fixture.clock.advance(10_000);
    assert.deepEqual(fixture.chains, ['cluster-pick-2']);
    assert.ok(fixture.nft.chainNames.includes('cluster-pick-2'));
  });

  test('take with them the chains behind them and the sets of sources', async () => {
    const fixture = new Fixture();
    const guarded = planOf(
      {
        name: 's1',
        clusterIP: '10.96.0.1',
        loadBalancerVIPs: ['198.18.0.1'],
        externalPolicyLocal: true,
        sourceRanges: ['203.0.113.0/24'],
      },
      [{ ip: '10.244.0.1' }],
    );
    await fixture.sync(plansByKey(guarded));
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1', 'pick-1', 'sources-24', 'split-pick-1']);
    assert.deepEqual(guardChains(fixture), ['filter-output-pre-dnat', 'filter-prerouting-pre-dnat']);
    await fixture.sync(plansByKey(one), key);
    await fixture.clock.advance(62_000);
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1']);
    assert.deepEqual(guardChains(fixture), []);
    assert.ok(!fixture.nft.setNames.includes('sources-24'));
    const before = fixture.nft.batches.length;
    await fixture.sync(plansByKey(guarded), key);
    assert.equal(fixture.nft.batches.length, before + 1);
    assert.equal(fixture.nft.elementsOf('sources-24').size, 1);
    assert.deepEqual(guardChains(fixture), ['filter-output-pre-dnat', 'filter-prerouting-pre-dnat']);
    await fixture.sync(plansByKey(one), 'all');
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1']);
    assert.deepEqual(guardChains(fixture), []);
    assert.ok(!fixture.nft.setNames.includes('sources-24'));
  });

  test('are tried again a minute later when the kernel still counts them as used', async () => {
    const fixture = new Fixture();
    await fixture.sync(plansByKey(two));
    await fixture.sync(plansByKey(one), key);
    await fixture.clock.advance(60_500);
    fixture.nft.interference = () => {
      throw new NftError('commit', [{ errno: 'EBUSY', text: '' }]);
    };
    await fixture.clock.advance(1000);
    fixture.nft.interference = undefined;
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1', 'cluster-pick-2']);
    await fixture.clock.advance(61_000);
    assert.deepEqual(sharedChains(fixture), ['cluster-pick-1']);
    assert.equal(fixture.clock.pending, 0);
  });

  test('are left alone when a full sync has removed them', async () => {
    const fixture = new Fixture();
    await fixture.sync(plansByKey(two));
    await fixture.sync(plansByKey(one), key);
    await fixture.clock.advance(60_500);
    await fixture.sync(plansByKey(one), 'all');
    const before = fixture.nft.batches.length;
    await fixture.clock.advance(120_000);
    assert.equal(fixture.nft.batches.length, before);
    assert.equal(fixture.clock.pending, 0);
  });
});

test('service ports that cannot be prepared are refused with the reason, and the others are programmed', async () => {
  const fixture = new Fixture();
  const unnameable = planOf({ clusterIP: '10.96.0.8', portName: 'a\0b' }, [{ ip: '10.244.0.8' }]);
  const faulty = FaultyPlan.of({ name: 'faulty', clusterIP: '10.96.0.9' });
  const plans = plansByKey(service(1, 1), unnameable, faulty);
  for (const changed of ['all', ['default/s1/TCP'], [unnameable.port.key]] as const) {
    const { refused } = await fixture.sync(plans, changed === 'all' ? changed : [...changed]);
    assert.deepEqual(
      refused.map(({ key, error }) => [key, error.message]),
      [
        [unnameable.port.key, 'cannot be prepared: comment "default/web:a\\u0000b" has a NUL character'],
        ['default/faulty/TCP', 'cannot be prepared: no decision can be made'],
      ],
    );
    assert.deepEqual(fixture.frontends, ['10.96.0.1']);
  }
});
