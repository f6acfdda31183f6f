import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { packetRules } from '../backends/nftables/packet-rules.ts';
import type { LoggedPacket } from '../kernel/nflog/codec.ts';
import { TimeSlice } from '../lib/time-slice.ts';
import { addressKeyFrom } from '../model/address-key.ts';
import { nodePortAddresses } from '../model/node-port-addresses.ts';
import { Refusals, type RefusedConnection } from './refusals.ts';
import { ServiceIndex } from './service-index.ts';

const lonely = planOf({ name: 'lonely', clusterIP: '10.96.0.2' });
const ranged = planOf(
  {
    name: 'ranged',
    clusterIP: '10.96.0.3',
    loadBalancerVIPs: ['198.18.0.3'],
    sourceRanges: ['203.0.113.0/25'],
  },
  [{ ip: '10.244.0.5' }],
);
const local = planOf({ name: 'local', clusterIP: '10.96.0.4', nodePort: 30004, externalPolicyLocal: true }, [
  { ip: '10.244.2.5' },
]);

function packet(to: string, from = '203.0.113.200', more: Partial<LoggedPacket> = {}): LoggedPacket {
  const [, address = '', port = ''] = /^(.*):(\d+)$/.exec(to) ?? [];
  return {
    family: 'IPv4',
    protocol: 6,
    source: addressKeyFrom(from) ?? 0,
    sourcePort: 40_000,
    destination: addressKeyFrom(address) ?? 0,
    destinationPort: Number(port),
    interfaceIndex: 2,
    ...more,
  };
}

async function setUp() {
  const index = new ServiceIndex({
    family: 'IPv4',
    plans: plansByKey(lonely, ranged, local),
    placements: () => ({ byEndpoint: new Map(), slices: [] }),
  });
  const clock = new FakeClock();
  await index.build(new TimeSlice(clock));
  index.setOwnAddresses(['192.0.2.1']);
  const refused: RefusedConnection[] = [];
  const refusals = new Refusals({
    indexes: new Map([['IPv4', index]]),
    decider: () => ({
      rules: packetRules(false),
      facts: async () => ({
        family: 'IPv4',
        nodeIP: '192.0.2.1',
        ownAddresses: ['192.0.2.1'],
        nodePortAddresses: nodePortAddresses('IPv4', []),
        localDetector: { kind: 'cidr', cidr: '10.244.1.0/24' },
        masqueradeAll: false,
        serviceCIDRs: [],
      }),
    }),
    interfaces: async () => new Map([[2, 'eth0']]),
    onRefused: (each) => refused.push(each),
    clock,
  });
  return { clock, refusals, refused };
}

test('refused connections are told apart, with the reason that explain gives', async () => {
  const { refusals, refused } = await setUp();
  await refusals.take(packet('10.96.0.2:80'));
  await refusals.take(packet('198.18.0.3:80'));
  await refusals.take(packet('192.0.2.1:30004'));
  // Admitted, a pod of this node, and a destination of no Service.
  await refusals.take(packet('198.18.0.3:80', '203.0.113.5'));
  await refusals.take(packet('192.0.2.1:30004', '10.244.1.9'));
  await refusals.take(packet('10.96.0.77:80'));
  assert.deepEqual(
    refused.map(({ service, how, event }) => [service.plan.port.name, how, event]),
    [
      ['lonely', 'rejected', 'Rejected'],
      ['ranged', 'filtered', 'Filtered'],
      ['local', 'dropped', 'Dropped'],
    ],
  );
  assert.match(refused[0]?.reason ?? '', /There are no endpoints\./);
  assert.match(refused[1]?.reason ?? '', /203\.0\.113\.200 is in none of the admitted ranges/);
  assert.equal(refused[0]?.flow.client, '203.0.113.200:40000');
});

test('further packets of one attempt count once', async () => {
  const { clock, refusals, refused } = await setUp();
  await refusals.take(packet('10.96.0.2:80'));
  await clock.advance(3_000);
  await refusals.take(packet('10.96.0.2:80'));
  await refusals.take(packet('10.96.0.2:80', '203.0.113.200', { sourcePort: 40_001 }));
  assert.equal(refused.length, 2);
  await clock.advance(120_000);
  await refusals.take(packet('10.96.0.2:80'));
  assert.equal(refused.length, 3);
});
