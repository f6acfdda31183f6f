import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endpoints, webPort } from '../../test/cluster/objects.ts';
import { planServicePort } from './plan.ts';
import { endpointReason } from './reasons.ts';

const here = { nodeName: 'n1', zone: 'za', allowExternalIPs: true };

type Row = readonly [port: string, endpoints: string, reason: string];

function check(subject: 'internal' | 'external' | 'topology', rows: readonly Row[], context = here): void {
  for (const [port, shorthand, reason] of rows) {
    const plan = planServicePort(webPort(port), endpoints(shorthand), context);
    assert.equal(plan[subject].reason, reason, `port "${port}", endpoints "${shorthand}"`);
  }
}

test('a plan gives the reason for its decision on cluster IP traffic', () => {
  check('internal', [
    ['', '', 'there are no endpoints'],
    ['', '1X@n1 2Z@n2', 'none of 2 endpoints is ready, or terminating and still serving'],
    ['', '1R@n1 2R@n2 3X@n2', 'internalTrafficPolicy is Cluster; 2 of 3 endpoints used: ready'],
    [
      '',
      '1T@n1',
      'internalTrafficPolicy is Cluster; 1 of 1 endpoint used: none ready, terminating and still serving',
    ],
    [
      '',
      '1R@n1/za 2R@n2/zb',
      'internalTrafficPolicy is Cluster; 1 of 2 endpoints used: ready and hinted for zone za',
    ],
    [
      '',
      '1R@n1!n1 2R@n2!n2',
      'internalTrafficPolicy is Cluster; 1 of 2 endpoints used: ready and hinted for node n1',
    ],
    ['iL', '1R@n1 2R@n1 3R@n2', 'internalTrafficPolicy is Local; 2 ready endpoints on node n1'],
    [
      'iL',
      '1R@n2 2R@n2 3R@n3',
      'internalTrafficPolicy is Local and no endpoint on node n1 is ready; 3 endpoints are elsewhere',
    ],
    [
      'iL',
      '1X@n1 2R@n2',
      'internalTrafficPolicy is Local and no endpoint on node n1 is ready; 1 endpoint is elsewhere',
    ],
    [
      'iL',
      '1T@n1 2R@n2',
      'internalTrafficPolicy is Local and no endpoint on node n1 is ready; 1 terminating endpoint there still serving',
    ],
  ]);
});

test('a plan gives the reason for its decision on outside traffic', () => {
  check('external', [
    ['eL', '1R@n1', 'there is no node port, load balancer IP or external IP'],
    ['np', '1R@n1', 'externalTrafficPolicy is Cluster; 1 of 1 endpoint used: ready'],
    ['eL np', '1R@n1', 'externalTrafficPolicy is Local; 1 ready endpoint on node n1'],
    [
      'eL vip',
      '1R@n2',
      'externalTrafficPolicy is Local and no endpoint on node n1 is ready; 1 endpoint is elsewhere',
    ],
    ['eL xip', '', 'there are no endpoints'],
  ]);
});

test('a plan gives the reason why it follows hints or ignores them', () => {
  check('topology', [
    ['iL', '1R@n1/za', 'only endpoints on node n1 are used, so hints do not apply'],
    ['', '1T@n1/za', 'no endpoint is ready, so hints do not apply'],
    ['', '1R@n1 2R@n2', '2 ready endpoints without hints'],
    ['', '1R@n1!n1 2R@n2!n2', '1 of 2 ready endpoints hinted for node n1'],
    ['', '1R@n1/za 2R@n2/zb', '1 of 2 ready endpoints hinted for zone za'],
    [
      '',
      '1R@n2/za!n2 2R@n3/zb!n3',
      '0 of 2 ready endpoints hinted for node n1; 1 of 2 ready endpoints hinted for zone za',
    ],
    [
      '',
      '1R@n2/za!n1 2R@n3/zb',
      '1 of 2 ready endpoints without node hints; 1 of 2 ready endpoints hinted for zone za',
    ],
    ['', '1R@n1/za 2R@n2', '1 of 2 ready endpoints without zone hints: hints ignored'],
    ['', '1R@n1/zb', '0 of 1 ready endpoint hinted for zone za: hints ignored'],
    ['', '1R@n1!n2 2R@n2!n3', '0 of 2 ready endpoints hinted for node n1: hints ignored'],
  ]);
  const unlabelled =
    '0 of 1 ready endpoint hinted for the zone of node n1, which has no zone label: hints ignored';
  check('topology', [['', '1R@n1/za', unlabelled]], { ...here, zone: '' });
});

test('endpointReason says why an endpoint is used or not', () => {
  const rows: readonly (readonly [port: string, endpoints: string, reasons: readonly string[]])[] = [
    [
      '',
      '1R@n1 2X@n1 3Z@n1 4T@n1',
      [
        'used under policy Cluster',
        'not ready',
        'terminating and no longer serving',
        'terminating, and others are ready',
      ],
    ],
    ['eL np', '1R@n1 2R@n2', ['used under policy Cluster and Local', 'used under policy Cluster']],
    ['iL', '1R@n1 2R@n2', ['used under policy Local', 'not on node n1']],
    ['', '1R@n1/za 2R@n2/zb', ['used under policy Cluster', 'hinted for other zones']],
    ['', '1R@n1/za 2P@n2/zb', ['used under policy Cluster', 'hinted for other zones']],
    ['', '1R@n1!n1 2R@n2!n2', ['used under policy Cluster', 'hinted for other nodes']],
  ];
  for (const [port, shorthand, reasons] of rows) {
    const plan = planServicePort(webPort(port), endpoints(shorthand), here);
    assert.deepEqual(
      plan.endpoints.map((endpoint) => endpointReason(plan, endpoint)),
      reasons,
      shorthand,
    );
  }
});

test('a decision is serialised with its reason', () => {
  const { internal, topology } = planServicePort(webPort(), endpoints('1R@n1'), here);
  assert.deepEqual(JSON.parse(JSON.stringify({ internal, topology })), {
    internal: {
      action: 'forward',
      endpoints: 'cluster',
      reason: 'internalTrafficPolicy is Cluster; 1 of 1 endpoint used: ready',
    },
    topology: { mode: 'none', reason: '1 ready endpoint without hints' },
  });
});
