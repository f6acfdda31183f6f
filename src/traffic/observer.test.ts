import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { planOf, plansByKey } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { packetRules as ipvsRules } from '../backends/ipvs/packet-rules.ts';
import { packetRules as nftablesRules } from '../backends/nftables/packet-rules.ts';
import type { FlowEvent, FlowItem, TrafficGrouping } from '../inspect/traffic-api.ts';
import type { FlowListener } from '../kernel/ct/events.ts';
import { IPS_ASSURED, IPS_OFFLOAD, IPS_SEEN_REPLY, TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import { addressKeyFrom } from '../model/address-key.ts';
import type { Placement } from '../model/placement.ts';
import type { PlannedPort } from '../plan/plan.ts';
import type { ObservedKernel } from './observation.ts';
import { TrafficObserver } from './observer.ts';
import type { Decider } from './refusals.ts';

const web = planOf({ name: 'web', clusterIP: '10.96.0.1', nodePort: 30080 }, [
  { ip: '10.244.0.5' },
  { ip: '10.244.0.6' },
]);
const other = planOf({ name: 'other', clusterIP: '10.96.0.2' }, [{ ip: '10.244.0.7' }]);
const [established, timeWait, close] = [3, 7, 8];

interface FlowParts {
  readonly id: number;
  readonly to?: string;
  readonly port?: number;
  readonly endpoint?: string;
  readonly client?: string;
  readonly state?: number;
  readonly status?: number;
  readonly bytes?: number;
}

function flowOf(parts: FlowParts): TrackedFlow {
  const { id, to = '10.96.0.1', port = 80, endpoint = '10.244.0.5', client = '10.1.0.9' } = parts;
  const { state = established, status = IPS_SEEN_REPLY | IPS_ASSURED, bytes = 0 } = parts;
  return Object.assign(new TrackedFlow(), {
    protocol: 6,
    source: addressKeyFrom(client),
    sourcePort: 40_000 + id,
    destination: addressKeyFrom(to),
    destinationPort: port,
    answerer: addressKeyFrom(endpoint),
    answererPort: 8080,
    id,
    status,
    tcpState: state,
    isCounted: true,
    packetsOut: 1,
    bytesOut: bytes,
    packetsBack: 2,
    bytesBack: 10 * bytes,
  });
}

/** A kernel whose table is a list of flows. */
class FakeKernel implements ObservedKernel {
  table: FlowParts[] = [];
  isAccounting = false;
  isClosed = true;
  listener: FlowListener | undefined;
  /** Called while the table is read, after half of it. */
  meanwhile = () => {};

  readonly flows = {
    forEachTrackedFlow: async (family: string, visitor: { flow(flow: TrackedFlow): void }) => {
      if (family !== 'IPv4') return;
      const flows = this.table.map(flowOf);
      for (const flow of flows.slice(0, flows.length / 2)) visitor.flow(flow);
      this.meanwhile();
      for (const flow of flows.slice(flows.length / 2)) {
        if (this.table.some(({ id }) => id === flow.id)) visitor.flow(flow);
      }
    },
    readAgain: async (flows: readonly Pick<TrackedFlow, 'id'>[], visit: (flow: TrackedFlow) => void) => {
      await this.beforeReading();
      for (const { id } of flows) {
        const found = this.table.find((each) => each.id === id);
        if (found) visit(flowOf(found));
      }
    },
  };
  /** Called before entries are read again. */
  beforeReading = async () => {};
  areClosesFollowed = false;

  follow(listener: FlowListener) {
    this.listener = listener;
    const none = () => {};
    const followCloses = (isOn: boolean) => {
      this.areClosesFollowed = isOn;
    };
    return { pause: none, resume: none, close: none, drained: async () => {}, followCloses };
  }

  async switchOnAccounting() {
    this.isAccounting = true;
    return {
      isOn: true,
      hasEvents: true,
      restore: async () => {
        this.isAccounting = false;
      },
    };
  }

  async ownAddresses() {
    return ['192.0.2.1'];
  }

  async interfaces() {
    return new Map();
  }

  async openRefusals(): Promise<never> {
    throw new Error('no log here');
  }

  close() {
    this.isClosed = true;
  }

  opened(parts: FlowParts) {
    this.table.push(parts);
    this.listener?.opened(flowOf({ ...parts, bytes: 0 }));
  }

  /** The event has no packets and bytes, unlike the entry. */
  closed(id: number, bytes: number) {
    this.table = this.table.map((each) => (each.id === id ? { ...each, state: timeWait, bytes } : each));
    const flow = this.table.find((each) => each.id === id);
    assert.ok(flow);
    if (this.areClosesFollowed) this.listener?.closed(flowOf({ ...flow, bytes: 0 }));
  }

  ended(id: number, parts: Partial<FlowParts> = {}) {
    const flow = this.table.find((each) => each.id === id);
    assert.ok(flow);
    this.table = this.table.filter((each) => each !== flow);
    this.listener?.ended(flowOf({ ...flow, state: timeWait, ...parts }));
  }
}

const undecided = (): Decider => assert.fail('nothing is refused here');

function setUp(plans = plansByKey(web, other), decider = undecided) {
  const clock = new FakeClock();
  const kernel = new FakeKernel();
  const placements = new Map<string, Placement>();
  const listeners = new Set<(keys: Iterable<string>) => void>();
  const change = async (key: string, plan: PlannedPort | undefined) => {
    if (plan) plans.set(key, plan);
    else plans.delete(key);
    for (const listener of listeners) listener([key]);
    await clock.advance(0);
  };
  const observer = new TrafficObserver({
    feeds: [
      {
        family: 'IPv4',
        plans,
        placements: () => ({ byEndpoint: placements, slices: [] }),
        followPlans: (listener) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      },
    ],
    open: async () => {
      kernel.isClosed = false;
      return kernel;
    },
    openMeter: async () => {
      throw new Error('no rules here');
    },
    onEventMeter: () => {},
    decider,
    clock,
  });
  /** A new look: the last one is old enough. */
  const figures = async (by: TrafficGrouping = 'service') => {
    await clock.advance(5_000);
    const { items } = await observer.figures({ by, isWanted: () => true, withIdle: false });
    return new Map(
      items.map((item) => [item.client ?? item.endpoint ?? item.service.split('/')[1], item] as const),
    );
  };
  return { clock, kernel, observer, figures, change, listeners, placements };
}

suite('figures', () => {
  test('count from the first question on, also of flows that were there before', async () => {
    const { kernel, figures } = setUp();
    kernel.table = [{ id: 1, bytes: 100 }];
    const first = (await figures()).get('web');
    assert.deepEqual([first?.opened, first?.open, first?.bytesToEndpoint], [0, 1, 0]);
    kernel.table = [{ id: 1, bytes: 150 }];
    kernel.opened({ id: 2, bytes: 7 });
    kernel.opened({ id: 3, to: '10.96.0.2', endpoint: '10.244.0.7' });
    kernel.opened({ id: 4, to: '10.96.0.99' });
    const second = (await figures()).get('web');
    assert.ok(second);
    const { opened, open, ended, bytesToEndpoint, bytesToClient, packetsToEndpoint } = second;
    assert.deepEqual([opened, open, ended], [1, 2, 0]);
    assert.deepEqual([bytesToEndpoint, bytesToClient, packetsToEndpoint], [57, 570, 1]);
    kernel.ended(1, { bytes: 160 });
    const third = (await figures()).get('web');
    assert.deepEqual([third?.open, third?.ended, third?.bytesToEndpoint], [1, 1, 67]);
    assert.equal((await figures()).get('other')?.opened, 1);
  });

  test('are those of each endpoint and of each client, and of node ports at addresses of the node', async () => {
    const { kernel, figures } = setUp();
    await figures();
    kernel.opened({ id: 1 });
    kernel.opened({ id: 2, to: '192.0.2.1', port: 30080, endpoint: '10.244.0.6', client: '203.0.113.9' });
    kernel.opened({ id: 3, to: '192.0.2.99', port: 30080, endpoint: '10.244.0.6' });
    const endpoints = await figures('endpoint');
    assert.deepEqual(
      [...endpoints.values()].map(({ endpoint, opened, expectedShare }) => [endpoint, opened, expectedShare]),
      [
        ['10.244.0.5:8080', 1, 0.5],
        ['10.244.0.6:8080', 1, 0.5],
      ],
    );
    const clients = await figures('client');
    assert.deepEqual([...clients.keys()], ['10.1.0.9', '203.0.113.9']);
  });

  test('expect the shares of the table where it chooses, and equal ones where the kernel has its own', async () => {
    const hashed = planOf({ clusterIP: '10.96.0.1', balance: 'hash' }, [
      { ip: '10.244.0.5' },
      { ip: '10.244.0.6' },
    ]);
    for (const [rules, shares] of [
      [nftablesRules(false), [254 / 509, 255 / 509]],
      [ipvsRules(''), [0.5, 0.5]],
    ] as const) {
      const facts = () => assert.fail('nothing is refused here');
      const { kernel, figures } = setUp(plansByKey(hashed), () => ({ rules, facts }));
      await figures('endpoint');
      kernel.opened({ id: 1 });
      kernel.opened({ id: 2, endpoint: '10.244.0.6' });
      const found = [...(await figures('endpoint')).values()].map(({ expectedShare }) => expectedShare ?? 0);
      assert.deepEqual(found.toSorted(), shares);
    }
  });

  test('count a flow once that begins or ends while the table is read', async () => {
    const { kernel, figures } = setUp();
    await figures();
    for (let id = 1; id <= 4; id++) kernel.opened({ id, bytes: 10 });
    kernel.meanwhile = () => {
      kernel.meanwhile = () => {};
      kernel.ended(1, { bytes: 12 });
      kernel.ended(4, { bytes: 12 });
      kernel.opened({ id: 5, bytes: 1 });
    };
    const during = (await figures()).get('web');
    // Flow 1 was found before it ended, flow 5 began after the place where it would have been found.
    assert.deepEqual([during?.opened, during?.open, during?.ended], [4, 3, 1]);
    assert.equal(during?.bytesToEndpoint, 42);
    const after = (await figures()).get('web');
    assert.deepEqual([after?.opened, after?.open, after?.ended, after?.bytesToEndpoint], [5, 3, 2, 45]);
  });

  test('are right also when flows begin and end while earlier events are counted, which lets other work pass', async () => {
    const { clock, kernel, figures } = setUp();
    await figures();
    for (let id = 1; id <= 8; id++) kernel.opened({ id, bytes: 10 });
    let ms = clock.monotonic() + 10_000;
    clock.monotonic = () => ms++;
    let turns = 0;
    kernel.meanwhile = () => {
      kernel.meanwhile = () => {};
      for (let id = 9; id <= 28; id++) kernel.opened({ id, bytes: 1 });
      const otherWork = () => {
        if (turns++ < 2) setImmediate(otherWork);
        else kernel.ended(20, { bytes: 1 });
      };
      setImmediate(otherWork);
    };
    await figures();
    assert.equal(turns, 3);
    ms += 10_000;
    const after = (await figures()).get('web');
    assert.deepEqual([after?.opened, after?.open, after?.ended, after?.bytesToEndpoint], [28, 27, 1, 100]);
  });

  test('may be asked for with an older look, which costs less; openings are those of now', async () => {
    const { clock, kernel, observer } = setUp();
    const wish = { by: 'service', isWanted: () => true, withIdle: false, maxAgeMs: 60_000 } as const;
    await observer.figures(wish);
    kernel.opened({ id: 1, bytes: 5 });
    await clock.advance(20_000);
    const [early] = (await observer.figures(wish)).items;
    assert.deepEqual([early?.opened, early?.open, early?.bytesToEndpoint], [1, 0, 0]);
    await clock.advance(25_000);
    await observer.figures(wish);
    await clock.advance(20_000);
    const [late] = (await observer.figures(wish)).items;
    assert.deepEqual([late?.opened, late?.open, late?.bytesToEndpoint], [1, 1, 5]);
  });

  test('a closed TCP connection is not open, though the kernel remembers it', async () => {
    const { kernel, figures } = setUp();
    await figures();
    kernel.opened({ id: 1, state: timeWait });
    const found = (await figures()).get('web');
    assert.deepEqual([found?.opened, found?.open, found?.ended], [1, 0, 1]);
  });

  test('connections that were reset or not answered are failures', async () => {
    const { kernel, figures } = setUp();
    await figures();
    kernel.opened({ id: 1 });
    kernel.opened({ id: 2 });
    kernel.ended(1, { state: close, status: 0 });
    kernel.ended(2, { state: 1, status: 0 });
    const failed = (await figures()).get('web')?.failed;
    assert.deepEqual([failed?.reset, failed?.unanswered], [1, 1]);
  });

  test('follow changes of the plans, and count the ends of flows of a Service that is gone', async () => {
    const { kernel, figures, change } = setUp();
    await figures();
    kernel.opened({ id: 1, bytes: 5 });
    await change(web.port.key, undefined);
    kernel.ended(1, { bytes: 9 });
    assert.equal((await figures()).get('web')?.bytesToEndpoint, 9);
    const moved = planOf({ name: 'other', clusterIP: '10.96.0.77' }, [{ ip: '10.244.0.7' }]);
    await change(other.port.key, moved);
    kernel.opened({ id: 2, to: '10.96.0.77', endpoint: '10.244.0.7' });
    assert.equal((await figures()).get('other')?.opened, 1);
  });
});

test('an observation ends some time after the last question, and gives back everything', async () => {
  const { clock, kernel, figures, listeners } = setUp();
  await figures();
  assert.deepEqual([kernel.isAccounting, kernel.isClosed, listeners.size], [true, false, 1]);
  await clock.advance(29_000);
  assert.equal(kernel.isClosed, false);
  await clock.advance(2_000);
  assert.deepEqual([kernel.isAccounting, kernel.isClosed, listeners.size], [false, true, 0]);
});

test('a flow has the pod of its endpoint, also when it ends after the pod is gone', async () => {
  const { kernel, observer, placements } = setUp();
  const seen: (string | null | undefined)[] = [];
  const end = await observer.watch(
    () => true,
    ({ flow }) => seen.push(flow?.pod),
    () => assert.fail('it ends too early'),
  );
  placements.set('10.244.0.5:8080', { pod: 'shop/web-1', zone: 'za' });
  kernel.opened({ id: 1 });
  kernel.opened({ id: 2, endpoint: '10.244.0.6' });
  placements.set('10.244.0.5:8080', { pod: 'shop/web-2' });
  kernel.opened({ id: 3 });
  placements.clear();
  kernel.ended(1);
  end();
  assert.deepEqual(seen, ['shop/web-1', null, 'shop/web-2', 'shop/web-2']);
});

test('a watcher is told of openings and ends, and keeps the observation going', async () => {
  const { clock, kernel, observer } = setUp();
  const seen: Pick<FlowEvent, 'event' | 'flow' | 'count'>[] = [];
  const end = await observer.watch(
    (_flow, plan) => plan === web,
    (event) => seen.push(event),
    () => assert.fail('it ends too early'),
  );
  await clock.advance(100_000);
  kernel.opened({ id: 1 });
  kernel.opened({ id: 2, to: '10.96.0.2', endpoint: '10.244.0.7' });
  kernel.ended(1);
  kernel.listener?.lost(3);
  end();
  end();
  assert.deepEqual(
    seen.map(({ event, flow, count }) => [event, flow?.endpoint ?? null, count]),
    [
      ['Opened', '10.244.0.5:8080', 1],
      ['Ended', '10.244.0.5:8080', 1],
      ['Lost', null, 3],
    ],
  );
  await clock.advance(31_000);
  assert.equal(kernel.isClosed, true);
});

suite('TCP connections that end', () => {
  /** Entries are read again after this time. */
  const collectMs = 5;
  const watched = async (before: (kernel: FakeKernel) => void = () => {}) => {
    const { kernel, observer, clock } = setUp();
    before(kernel);
    const seen: string[] = [];
    const end = await observer.watch(
      () => true,
      ({ event, flow }) => seen.push(`${event} ${flow?.client} ${flow?.bytesToClient}`),
      () => assert.fail('it ends too early'),
    );
    const soon = () => clock.advance(collectMs);
    await soon();
    return { kernel, seen, end, soon };
  };

  test('are told once, with their bytes, while the kernel still remembers them', async () => {
    const { kernel, seen, end, soon } = await watched();
    kernel.opened({ id: 1 });
    kernel.opened({ id: 2 });
    kernel.closed(1, 7);
    kernel.closed(2, 8);
    kernel.closed(1, 7);
    await soon();
    assert.deepEqual(seen.slice(2), ['Ended 10.1.0.9:40001 70', 'Ended 10.1.0.9:40002 80']);
    kernel.closed(1, 9);
    kernel.ended(1);
    kernel.ended(2);
    await soon();
    assert.equal(seen.length, 4);
    end();
    assert.equal(kernel.areClosesFollowed, false);
  });

  test('are not told when they had ended before', async () => {
    const { kernel, seen } = await watched(({ table }) => table.push({ id: 1, state: timeWait }, { id: 2 }));
    kernel.ended(1);
    kernel.ended(2);
    assert.deepEqual(seen, ['Ended 10.1.0.9:40002 0']);
  });

  test('are told although they end while the table is read', async () => {
    const { kernel, seen } = await watched((kernel) => {
      kernel.table.push({ id: 1 }, { id: 2 });
      kernel.meanwhile = () => {
        if (!kernel.areClosesFollowed || kernel.table.some(({ state }) => state === timeWait)) return;
        kernel.closed(1, 1);
        kernel.closed(2, 2);
      };
    });
    assert.deepEqual(seen, ['Ended 10.1.0.9:40001 10', 'Ended 10.1.0.9:40002 20']);
    kernel.ended(1);
    kernel.ended(2);
    assert.equal(seen.length, 2);
  });

  test('are told once when the kernel forgets them before or while their entry is read', async () => {
    const { kernel, seen, soon } = await watched();
    for (const id of [1, 2, 3]) kernel.opened({ id });
    kernel.closed(1, 1);
    kernel.ended(1, { bytes: 1 });
    await soon();
    kernel.closed(2, 2);
    kernel.beforeReading = async () => kernel.ended(2, { bytes: 2 });
    await soon();
    const [third] = kernel.table;
    kernel.beforeReading = async () => {
      kernel.ended(3, { bytes: 3 });
      if (third) kernel.table.push(third);
    };
    kernel.closed(3, 3);
    await soon();
    const ends = ['Ended 10.1.0.9:40001 10', 'Ended 10.1.0.9:40002 20', 'Ended 10.1.0.9:40003 30'];
    assert.deepEqual(seen.slice(3), ends);
  });

  test('are told when the kernel forgets them if their entry cannot be read', async () => {
    const { kernel, seen, soon } = await watched();
    kernel.opened({ id: 1 });
    kernel.beforeReading = async () => {
      throw new Error('no memory');
    };
    kernel.closed(1, 1);
    await soon();
    assert.equal(seen.length, 1);
    kernel.ended(1, { bytes: 1 });
    assert.deepEqual(seen.slice(1), ['Ended 10.1.0.9:40001 10']);
  });
});

test('what cannot be counted is told', async () => {
  const { observer } = setUp();
  const { warning, lostEvents } = await observer.figures({
    by: 'service',
    isWanted: () => true,
    withIdle: false,
  });
  assert.equal(warning, 'refused connections are not counted: no log here');
  assert.equal(lostEvents, 0);
});

test('flows that are on the fast path say so', async () => {
  const { kernel, observer } = setUp();
  kernel.table = [{ id: 1, status: IPS_SEEN_REPLY | IPS_ASSURED | IPS_OFFLOAD }, { id: 2 }];
  const items: FlowItem[] = [];
  await observer.flows(
    () => true,
    async (some) => void items.push(...some),
  );
  assert.deepEqual(
    items.map(({ onFastPath }) => onFastPath),
    [true, undefined],
  );
});
