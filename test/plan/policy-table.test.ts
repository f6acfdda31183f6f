import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type PlanContext, planServicePort } from '../../src/plan/plan.ts';
import { endpoints, numbers, webPort } from '../cluster/objects.ts';

const here: PlanContext = { nodeName: 'n1', zone: 'za', allowExternalIPs: true };

/** Shorthand of a service port, and the endpoint lists that its policies use. */
const policies: readonly (readonly [port: string, uses: string])[] = [
  ['', 'cluster'],
  ['eL', 'cluster'],
  ['np', 'cluster'],
  ['vip', 'cluster'],
  ['xip', 'cluster'],
  ['eL np', 'cluster local'],
  ['eL vip', 'cluster local'],
  ['eL xip', 'cluster local'],
  ['iL', 'local'],
  ['iL eL', 'local'],
  ['iL np', 'cluster local'],
  ['iL vip', 'cluster local'],
  ['iL eL xip', 'cluster local'],
  ['iL eL np vip xip', 'cluster local'],
];

/** Endpoints, and the lists they make on node n1 in zone za, if the policy uses the list. */
const worlds: readonly {
  readonly endpoints: string;
  readonly cluster: string;
  readonly local: string;
  readonly mode?: string;
}[] = [
  { endpoints: '', cluster: '', local: '' },
  { endpoints: '1R@n1', cluster: '1', local: '1' },
  { endpoints: '1R@n2', cluster: '1', local: '' },
  { endpoints: '1R@', cluster: '1', local: '' },
  { endpoints: '1R@n1 2R@n2', cluster: '1 2', local: '1' },
  { endpoints: '1R@n1 10R@n1 2R@n2', cluster: '10 1 2', local: '10 1' },
  { endpoints: '1R@n1 2R@n2 3X@n2', cluster: '1 2', local: '1' },
  { endpoints: '1X@n1 2R@n2', cluster: '2', local: '' },
  { endpoints: '1X@n1', cluster: '', local: '' },
  { endpoints: '1S@n1', cluster: '', local: '' },
  { endpoints: '1Z@n1 2Z@n2', cluster: '', local: '' },
  { endpoints: '1P@n1 2R@n2', cluster: '1 2', local: '1' },
  // Terminating endpoints are used when no endpoint is ready, separately for each list.
  { endpoints: '1T@n1', cluster: '1', local: '1' },
  { endpoints: '1T@n2', cluster: '1', local: '' },
  { endpoints: '1T@n1 2T@n2', cluster: '1 2', local: '1' },
  { endpoints: '1T@n1 2R@n2', cluster: '2', local: '1' },
  { endpoints: '1T@n1 2R@n2 3T@n2', cluster: '2', local: '1' },
  { endpoints: '1R@n1 2T@n1', cluster: '1', local: '1' },
  { endpoints: '1R@n1 2T@n2', cluster: '1', local: '1' },
  { endpoints: '1Z@n1 2R@n2', cluster: '2', local: '' },
  { endpoints: '1X@n1 2T@n2', cluster: '2', local: '' },
  { endpoints: '1S@n1 2T@n2', cluster: '2', local: '' },
  { endpoints: '1S@n1 2T@n1', cluster: '2', local: '2' },
  // Zone hints.
  { endpoints: '1R@n1/za 2R@n2/zb', cluster: '1', local: '1', mode: 'PreferSameZone' },
  { endpoints: '1R@n1/zb 2R@n2/za', cluster: '2', local: '1', mode: 'PreferSameZone' },
  { endpoints: '1R@n2/za,zb 2R@n3/zb', cluster: '1', local: '', mode: 'PreferSameZone' },
  { endpoints: '1R@n1/za 2R@n2/zb 3X@n2', cluster: '1', local: '1', mode: 'PreferSameZone' },
  { endpoints: '1R@n1/za 2R@n2/zb 3T@n2', cluster: '1', local: '1', mode: 'PreferSameZone' },
  { endpoints: '1T@n1/za 2R@n2/za 3R@n3/zb', cluster: '2', local: '1', mode: 'PreferSameZone' },
  { endpoints: '1R@n1/za 2R@n2/zb 3R@n2', cluster: '1 2 3', local: '1' },
  { endpoints: '1R@n1/zb 2R@n2/zc', cluster: '1 2', local: '1' },
  { endpoints: '1R@n2/zb 2X@n1/za', cluster: '1', local: '' },
  { endpoints: '1T@n1/za 2R@n2/zb', cluster: '2', local: '1' },
  { endpoints: '1T@n1/za 2T@n2/zb', cluster: '1 2', local: '1' },
  // Node hints, with zone hints behind them.
  { endpoints: '1R@n1!n1 2R@n2!n2', cluster: '1', local: '1', mode: 'PreferSameNode' },
  { endpoints: '1R@n1!n2 2R@n2!n1', cluster: '2', local: '1', mode: 'PreferSameNode' },
  { endpoints: '1R@n1/zb!n1 2R@n2/za!n2', cluster: '1', local: '1', mode: 'PreferSameNode' },
  { endpoints: '1R@n2!n2,n1 2R@n3!n3 3X@n3', cluster: '1', local: '', mode: 'PreferSameNode' },
  { endpoints: '1R@n1/zb!n1 2R@n2/za', cluster: '2', local: '1', mode: 'PreferSameZone' },
  { endpoints: '1R@n2/za!n2 2R@n3/zb!n3', cluster: '1', local: '', mode: 'PreferSameZone' },
  { endpoints: '1R@n1!n1 2R@n2', cluster: '1 2', local: '1' },
  { endpoints: '1R@n1!n2 2R@n2!n3', cluster: '1 2', local: '1' },
  { endpoints: '1T@n1!n1 2T@n2!n2', cluster: '1 2', local: '1' },
];

for (const [port, uses] of policies) {
  test(`policies "${port}" over ${worlds.length} kinds of endpoints`, () => {
    const usesCluster = uses.includes('cluster');
    const usesLocal = uses.includes('local');
    for (const world of worlds) {
      const plan = planServicePort(webPort(port), endpoints(world.endpoints), here);
      const cluster = usesCluster ? world.cluster : '';
      const local = usesLocal ? world.local : '';
      assert.deepEqual(
        {
          usesCluster: plan.usesClusterEndpoints,
          usesLocal: plan.usesLocalEndpoints,
          cluster: numbers(plan.cluster),
          local: numbers(plan.local),
          all: numbers(plan.all),
          hasAny: plan.hasAnyEndpoints,
          internal: outcome(plan.internal),
          external: outcome(plan.external),
          near: plan.near && outcome(plan.near),
          mode: plan.topology.mode,
        },
        {
          usesCluster,
          usesLocal,
          cluster,
          local,
          all: union(cluster, local),
          // Every usable endpoint is in the cluster list.
          hasAny: world.cluster !== '',
          internal: expectedOutcome(world.cluster, port.includes('iL') ? 'local' : 'cluster', {
            cluster,
            local,
          }),
          external: expectedOutcome(world.cluster, port.includes('eL') ? 'local' : 'cluster', {
            cluster,
            local,
          }),
          near: port.includes('eL') && cluster !== '' ? 'cluster' : undefined,
          mode: usesCluster ? (world.mode ?? 'none') : 'none',
        },
        `endpoints "${world.endpoints}"`,
      );
    }
  });
}

const elsewhere: readonly (readonly [
  context: Partial<PlanContext>,
  endpoints: string,
  cluster: string,
  mode: string,
])[] = [
  [{ zone: 'zb' }, '1R@n1/za 2R@n2/zb', '2', 'PreferSameZone'],
  [{ zone: 'zc' }, '1R@n1/za 2R@n2/zb', '1 2', 'none'],
  [{ zone: '' }, '1R@n1/za 2R@n2/zb', '1 2', 'none'],
  [{ zone: '' }, '1R@n1/za!n1 2R@n2/zb!n2', '1', 'PreferSameNode'],
  [{ nodeName: 'n3', zone: 'zb' }, '1R@n2/za!n2 2R@n3/zb!n3', '2', 'PreferSameNode'],
  [{ nodeName: 'n9', zone: 'zb' }, '1R@n2/za!n2 2R@n3/zb!n3', '2', 'PreferSameZone'],
  [{ nodeName: 'n9', zone: 'zz' }, '1R@n2/za!n2 2R@n3/zb!n3', '1 2', 'none'],
];

test('topology hints are evaluated for the node that plans', () => {
  for (const [context, shorthand, cluster, mode] of elsewhere) {
    const plan = planServicePort(webPort(), endpoints(shorthand), { ...here, ...context });
    const name = `${JSON.stringify(context)} ${shorthand}`;
    assert.equal(numbers(plan.cluster), cluster, name);
    assert.equal(plan.topology.mode, mode, name);
  }
});

test('a node without a zone label is in no zone, not even in the zone with the empty name', () => {
  const hinted = endpoints('1R@n1 2R@n2').map((endpoint, i) => ({
    ...endpoint,
    zoneHints: [i === 0 ? '' : 'zb'],
  }));
  const plan = planServicePort(webPort(), hinted, { ...here, zone: '' });
  assert.deepEqual([numbers(plan.cluster), plan.topology.mode], ['1 2', 'none']);
});

test('with AllowServiceExternalIPs off a plan has no external IPs, but still counts as externally accessible', () => {
  const plan = planServicePort(webPort('iL xip'), endpoints('1R@n2'), {
    ...here,
    allowExternalIPs: false,
  });
  assert.deepEqual(plan.externalIPs, []);
  assert.equal(plan.externallyAccessible, true);
  assert.equal(numbers(plan.cluster), '1');
  assert.deepEqual(planServicePort(webPort('xip'), [], here).externalIPs, ['198.51.100.1']);
});

test('an endpoint list that leaves nothing out is the same array as the list of all endpoints', () => {
  const list = endpoints('1R@n1 2R@n1');
  const plan = planServicePort(webPort('eL np'), list, here);
  for (const set of [plan.cluster, plan.local, plan.all, plan.endpoints]) assert.equal(set, list);
  assert.equal(planServicePort(webPort('iL'), list, here).all, list);
});

function outcome(decision: { action: string; endpoints?: string }): string {
  return decision.endpoints ?? decision.action;
}

function expectedOutcome(usable: string, set: 'cluster' | 'local', sets: { cluster: string; local: string }) {
  if (usable === '') return 'reject';
  return sets[set] === '' ? 'drop' : set;
}

/** The union of both lists, sorted by `ip:port`. */
function union(a: string, b: string): string {
  const both = new Set([...a.split(' '), ...b.split(' ')].filter(Boolean));
  return [...both].sort((x, y) => (`${x}:` < `${y}:` ? -1 : 1)).join(' ');
}
