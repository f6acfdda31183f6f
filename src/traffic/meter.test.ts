import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { IPS_SEEN_REPLY, TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { Element } from '../kernel/nft/objects.ts';
import { addressKeyFrom, keyBytes } from '../model/address-key.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { RuleMeter } from './meter.ts';

const web = planOf({ name: 'web', clusterIP: '10.96.0.1', nodePort: 30080 }, [{ ip: '10.244.0.5' }]);
const other = planOf({ name: 'other', clusterIP: '10.96.0.1' }, [{ ip: '10.244.0.7' }]);
const [confirmed, dying] = [0x8, 0x200];
const [established, synSent, timeWait] = [3, 1, 7];

/** What the kernel counted for packets of one kind to or from `ip:port`. */
function element(to: string, status: number, direction: number, packets: number, bytes = 0): Element {
  const [ip = '', port = ''] = to.split(':');
  const key = new Uint8Array(20);
  key.set(keyBytes(addressKeyFrom(ip) ?? 0));
  key[4] = 6;
  new DataView(key.buffer).setUint16(8, Number(port));
  key.set(new Uint8Array(Uint32Array.of(status).buffer), 12);
  key[16] = direction;
  return { key, counted: { packets, bytes } };
}

function flowOf(id: number, tcpState: number, status = IPS_SEEN_REPLY): TrackedFlow {
  return Object.assign(new TrackedFlow(), {
    protocol: 6,
    destination: addressKeyFrom('10.96.0.1'),
    destinationPort: 80,
    answerer: addressKeyFrom('10.244.0.5'),
    answererPort: 8080,
    id,
    tcpState,
    status,
  });
}

async function setUp(plans: Map<string, PlannedPort> = plansByKey(web)) {
  const clock = new FakeClock();
  const kernel = { elements: [] as Element[], flows: [] as TrackedFlow[], looks: 0, lookMs: 0, entries: 0 };
  let listener = (_keys: Iterable<string>) => {};
  const meter = new RuleMeter({
    feeds: [
      {
        family: 'IPv4',
        plans,
        placements: () => ({ byEndpoint: new Map(), slices: [] }),
        followPlans: (follower) => {
          listener = follower;
          return () => {};
        },
      },
    ],
    kinds: new Set(['connections', 'bytes']),
    kernel: {
      nft: {
        commit: async () => ({ generation: 1, bytes: 0 }),
        listElements: async (_set, onElements) => onElements(kernel.elements, false),
      },
      flows: {
        size: () => kernel.entries,
        forEachTrackedFlow: async (_family, visitor) => {
          kernel.looks++;
          for (const flow of kernel.flows) visitor.flow(flow);
          await clock.advance(kernel.lookMs);
        },
      },
      ownAddresses: async () => ['192.0.2.1'],
      interfaces: async () => new Map(),
      openRefusals: () => Promise.reject(new Error('no log here')),
      close: () => {},
    },
    decider: () => assert.fail('nothing is refused here'),
    clock,
  });
  await meter.start();
  const figures = async () => (await meter.read())[0]?.figures;
  const change = async (add: PlannedPort, remove: PlannedPort) => {
    plans.delete(remove.port.key);
    plans.set(add.port.key, add);
    listener([remove.port.key, add.port.key]);
    await clock.advance(0);
  };
  return { clock, kernel, meter, figures, change };
}

test('connections, packets, bytes and resets follow from what packets are counted as', async () => {
  const { kernel, figures } = await setUp();
  kernel.elements = [
    element('10.96.0.1:80', 0, 0, 3, 180),
    element('10.96.0.1:80', confirmed, 0, 10, 1_000),
    element('10.96.0.1:80', confirmed, 1, 9, 9_000),
    element('10.96.0.1:80', confirmed | dying, 1, 1, 40),
    element('192.0.2.1:30080', 0, 0, 2, 120),
    element('192.0.2.9:30080', 0, 0, 50, 0),
  ];
  const { opened, packetsToEndpoint, bytesToEndpoint, packetsToClient, bytesToClient, failed } =
    (await figures()) ?? assert.fail();
  assert.deepEqual([opened, packetsToEndpoint, bytesToEndpoint], [5, 15, 1_300]);
  assert.deepEqual([packetsToClient, bytesToClient, failed.reset], [10, 9_040, 1]);
});

test('a reading that misses an element, or finds it counting from 0 again, never makes totals smaller', async () => {
  const { kernel, figures } = await setUp();
  const opened = async (elements: Element[]) => {
    kernel.elements = elements;
    return (await figures())?.opened;
  };
  assert.equal(await opened([element('10.96.0.1:80', 0, 0, 5)]), 5);
  assert.equal(await opened([]), 5);
  assert.equal(await opened([element('10.96.0.1:80', 0, 0, 7), element('10.96.0.1:80', 0, 0, 7)]), 7);
  assert.equal(await opened([element('10.96.0.1:80', 0, 0, 2)]), 9);
});

test('what is counted after another service port took over a destination counts for that one', async () => {
  const { kernel, meter, change } = await setUp();
  kernel.elements = [element('10.96.0.1:80', 0, 0, 5)];
  await meter.read();
  await change(other, web);
  kernel.elements = [element('10.96.0.1:80', 0, 0, 8)];
  const read = await meter.read();
  assert.deepEqual(
    read.map(({ port, figures }) => [port.name, figures.opened]),
    [
      ['web', 5],
      ['other', 3],
    ],
  );
});

test('open connections are those of the last look, and a large table is looked at less often', async () => {
  const { kernel, figures, clock } = await setUp();
  kernel.flows = [flowOf(1, established), flowOf(2, timeWait), flowOf(3, established)];
  kernel.lookMs = 10;
  assert.equal((await figures())?.open, 2);
  kernel.flows = [];
  await clock.advance(4_000);
  assert.equal((await figures())?.open, 2);
  assert.equal(kernel.looks, 1);
  await clock.advance(1_000);
  assert.equal((await figures())?.open, 0);
  kernel.flows = [flowOf(4, established)];
  kernel.entries = 100_000;
  await clock.advance(90_000);
  assert.equal((await figures())?.open, 0);
  await clock.advance(10_000);
  assert.equal((await figures())?.open, 1);
});

test('a connection that leaves the table without an answer is unanswered', async () => {
  const { kernel, figures } = await setUp();
  kernel.flows = [flowOf(1, synSent, 0), flowOf(2, synSent, 0), flowOf(3, synSent, 0)];
  assert.equal((await figures())?.failed.unanswered, 0);
  kernel.flows = [flowOf(2, established), flowOf(3, synSent, 0)];
  assert.equal((await figures())?.failed.unanswered, 1);
  kernel.flows = [];
  assert.equal((await figures())?.failed.unanswered, 2);
});
