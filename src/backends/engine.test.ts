import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { planOf } from '../../test/cluster/plans.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { FakeAddresses } from '../../test/kernel/fake-addresses.ts';
import { LogRecorder } from '../../test/log-recorder.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { SyncRequest } from './backend.ts';
import type { Driver, EngineSignals, FullWrite, Remedy, Wanted, WantedChanges, Written } from './driver.ts';
import { SyncEngine } from './engine.ts';
import { RepairBudget } from './repair-budget.ts';

class Refusal extends Error {}

/** Names the write that it is from: `w1` is what the first one left. */
type Belief = string;

/** A mode whose kernel is a function: each call is noted, and `kernel` says what comes of it. */
class FunctionDriver implements Driver<Belief> {
  readonly subject = 'the kernel';
  readonly calls: string[] = [];
  /** Throws, or gives what was written; undefined stands for a success. */
  kernel: (call: string, wanted: Wanted) => Partial<Written<Belief>> | undefined | Promise<undefined> = () =>
    undefined;
  judge: (error: unknown) => Remedy = () => undefined;
  fullSyncPeriodMs?: number;
  skipsHourlySync = false;
  /** False: a partial write finds that everything has to be written. */
  mayWritePart = true;
  signals: EngineSignals<Belief> | undefined;
  #writes = 0;

  async writeChanges(belief: Belief, wanted: WantedChanges): Promise<Written<Belief> | undefined> {
    return this.#write(`changes ${[...wanted.changed]} of ${belief}`, wanted);
  }

  async writeRepair(
    belief: Belief,
    suspects: ReadonlySet<string>,
    wanted: WantedChanges,
  ): Promise<Written<Belief> | undefined> {
    return this.#write(`repair ${[...suspects]} and ${[...wanted.changed]} of ${belief}`, wanted);
  }

  writeAll(wanted: Wanted): FullWrite<Belief> {
    return {
      attempt: async (leftOut) => {
        const written = await this.#write(
          `all${[...leftOut.keys()].map((key) => ` -${key}`).join('')}`,
          wanted,
        );
        return written ?? assert.fail('a full sync writes everything');
      },
      remedy: async (error) => this.judge(error),
    };
  }

  prepareAlone({ port }: ServicePlan): void {
    if (port.name === 'bad') throw new Error('a NUL');
  }

  isRefusal(error: unknown): boolean {
    return error instanceof Refusal;
  }

  isTemporary({ message }: Error): boolean {
    return message === 'busy';
  }

  watch(signals: EngineSignals<Belief>) {
    this.calls.push('watch');
    this.signals = signals;
    return [{ close: () => void this.calls.push('end watch') }];
  }

  repairing(): void {
    this.calls.push('repairing');
  }

  close(): void {
    this.calls.push('close');
  }

  async #write(call: string, wanted: Wanted): Promise<Written<Belief> | undefined> {
    this.calls.push(call);
    const written = await this.kernel(call, wanted);
    if (!this.mayWritePart && !call.startsWith('all')) return undefined;
    return { belief: `w${++this.#writes}`, failures: new Map(), ...written };
  }
}

function fixture({ relevant = true } = {}) {
  const clock = new FakeClock();
  const driver = new FunctionDriver();
  const log = new LogRecorder();
  const addresses = new FakeAddresses('192.0.2.1');
  const counted: unknown[] = [];
  const cpu = { ms: 0 };
  let requests = 0;
  const engine = new SyncEngine({
    family: 'IPv6',
    driver,
    addresses: { source: addresses, relevant: relevant ? (listed) => listed : undefined },
    retryMs: 0,
    budget: new RepairBudget(clock, () => cpu.ms),
    metrics: {
      repairs: { inc: (labels) => void counted.push([labels]) },
      changedObjects: { inc: (labels, by) => void counted.push([labels, by]) },
    },
    logger: log,
    clock,
    requestSync: () => void requests++,
  });
  const sync = async (...changed: string[]) => {
    const { refused } = await engine.sync({ ...request, changed: new Set(changed) });
    return refused.map(({ key, error }) => `${key}: ${error.message}`);
  };
  const full = () => engine.sync({ ...request, changed: 'all' });
  /** What the driver was asked for since the last call. */
  const calls = () => driver.calls.splice(0);
  return { clock, cpu, driver, log, addresses, counted, engine, sync, full, calls, requests: () => requests };
}

const request: Omit<SyncRequest, 'changed'> = { plans: new Map(), serviceCIDRs: [], totalEndpoints: 0 };
const damage = (...suspects: string[]) => ({
  objects: new Map([['rule deleted', 2]]),
  by: 'nft[42]',
  suspects: new Set(suspects),
});
const anyDamage = { objects: new Map(), by: 'unknown' };
const failing = (error: Error) => () => {
  throw error;
};

describe('what a sync writes', () => {
  test('a sync writes everything when nothing is known or everything is asked for, and otherwise only changes', async () => {
    const { sync, full, calls } = fixture();
    await sync('a');
    assert.deepEqual(calls(), ['watch', 'all']);
    await sync('a', 'b');
    await sync();
    assert.deepEqual(calls(), ['changes a,b of w1', 'changes  of w2']);
    await full();
    assert.deepEqual(calls(), ['all']);
  });

  test('a sync writes everything when the driver finds that writing changes is not enough', async () => {
    const { driver, sync, calls, log } = fixture();
    await sync();
    driver.mayWritePart = false;
    await sync('a');
    assert.deepEqual(calls(), ['watch', 'all', 'changes a of w1', 'all']);
    assert.deepEqual(log.lines, []);
  });

  test('a sync writes everything when the kernel refuses changes', async () => {
    const { driver, sync, calls, log } = fixture();
    await sync();
    driver.kernel = (call) => (call === 'all' ? undefined : failing(new Refusal('no such table'))());
    await sync('a');
    assert.deepEqual(calls(), ['watch', 'all', 'changes a of w1', 'all']);
    assert.deepEqual(
      log.lines.map(({ message, attributes }) => [message, attributes]),
      [['Partial sync refused; syncing everything', { ipFamily: 'IPv6' }]],
    );
  });

  test('a sync writes everything after one that failed, or that left nothing known', async () => {
    const { driver, sync, calls } = fixture();
    await sync();
    driver.kernel = failing(new Error('socket closed'));
    await assert.rejects(sync('a'), /socket closed/);
    driver.kernel = () => ({ belief: undefined });
    await sync('a');
    await sync('b');
    assert.deepEqual(calls(), ['watch', 'all', 'changes a of w1', 'all', 'all']);
  });

  test('syncs run one after the other, and not while exclusive work runs', async () => {
    const { driver, sync, engine, calls } = fixture();
    await sync();
    calls();
    const gate = Promise.withResolvers<undefined>();
    driver.kernel = () => gate.promise;
    const both = [sync('a'), sync('b')];
    const work = driver.signals?.exclusively(async (belief) => void driver.calls.push(`work on ${belief}`));
    gate.resolve(undefined);
    await Promise.all([...both, work]);
    assert.deepEqual(calls(), ['changes a of w1', 'changes b of w2', 'work on w3']);
    await engine.close();
  });
});

describe('a full sync that fails', () => {
  test('a full sync makes up to eight attempts while the cause of its failure may pass by itself', async () => {
    const { driver, sync, calls } = fixture();
    driver.kernel = failing(new Refusal('out of memory'));
    driver.judge = () => 'again';
    await assert.rejects(sync(), /out of memory/);
    assert.equal(calls().filter((call) => call === 'all').length, 8);
  });

  test('a full sync goes on for as long as the driver finds another way', async () => {
    const { driver, sync } = fixture();
    let attempts = 0;
    driver.kernel = () => (++attempts < 20 ? failing(new Refusal('in use'))() : undefined);
    driver.judge = () => 'differently';
    assert.deepEqual(await sync(), []);
    assert.equal(attempts, 20);
  });

  test('a full sync leaves out the culprits of a refusal and reports them until they change', async () => {
    const { driver, sync, calls } = fixture();
    driver.kernel = (call) => (call === 'all -a -b' ? undefined : failing(new Refusal('bad port'))());
    const culprits = ['a', 'b'];
    driver.judge = () => new Map([[culprits.shift() ?? '', new Error('bad port')]]);
    assert.deepEqual(await sync(), ['a: bad port', 'b: bad port']);
    assert.deepEqual(calls(), ['watch', 'all', 'all -a', 'all -a -b']);
    driver.kernel = () => undefined;
    assert.deepEqual(await sync('c'), ['a: bad port', 'b: bad port']);
    assert.deepEqual(await sync('a'), ['b: bad port']);
  });

  test('a full sync fails when there is no remedy, or when the only culprit is left out already', async () => {
    const { driver, sync, calls } = fixture();
    driver.kernel = failing(new Refusal('no'));
    await assert.rejects(sync(), /no/);
    assert.deepEqual(calls(), ['watch', 'all']);
    driver.judge = () => new Map([['a', new Error('no')]]);
    await assert.rejects(sync(), /no/);
    assert.deepEqual(calls(), ['all', 'all -a']);
  });
});

describe('service ports that are not programmed', () => {
  test('a service port is reported until a sync of it, or a full sync, succeeds', async () => {
    const { driver, sync, full } = fixture();
    driver.kernel = () => ({ failures: new Map([['a', new Error('no name')]]) });
    assert.deepEqual(await sync(), ['a: no name']);
    driver.kernel = () => ({ failures: new Map([['b', new Error('no port')]]) });
    assert.deepEqual(await sync('b'), ['a: no name', 'b: no port']);
    driver.kernel = () => undefined;
    assert.deepEqual(await sync('b'), ['a: no name']);
    assert.deepEqual((await full()).refused, []);
  });
});

describe('service ports that cannot be prepared', () => {
  const plans = new Map(['bad', 'good'].map((name) => [name, planOf({ name, clusterIP: '10.96.0.1' })]));
  const failsWithBad = (_: string, wanted: Wanted) =>
    wanted.plans.has('bad') ? failing(new Error('comment has a NUL'))() : undefined;

  test('a full sync leaves them out and reports them with the reason', async () => {
    const { driver, engine, calls } = fixture();
    driver.kernel = failsWithBad;
    const { refused } = await engine.sync({ ...request, plans, changed: 'all' });
    assert.deepEqual(
      refused.map(({ key, error }) => `${key}: ${error.message}`),
      ['bad: cannot be prepared: a NUL'],
    );
    assert.deepEqual(calls(), ['watch', 'all', 'all -bad']);
    assert.deepEqual(engine.condition, {});
  });

  test('a partial sync that changes one becomes a full sync without it', async () => {
    const { driver, engine, calls } = fixture();
    await engine.sync({ ...request, changed: 'all' });
    driver.kernel = failsWithBad;
    const { refused } = await engine.sync({ ...request, plans, changed: new Set(['bad', 'gone']) });
    assert.deepEqual(calls(), ['watch', 'all', 'changes bad,gone of w1', 'all', 'all -bad']);
    assert.deepEqual(
      refused.map(({ key }) => key),
      ['bad'],
    );
  });

  test('a sync still fails when no plan explains its error, or when it fails without those plans too', async () => {
    const { driver, engine } = fixture();
    driver.kernel = failing(new Error('socket closed'));
    await assert.rejects(engine.sync({ ...request, plans, changed: 'all' }), /socket closed/);
    const good = new Map([...plans].slice(1));
    await assert.rejects(engine.sync({ ...request, plans: good, changed: 'all' }), /socket closed/);
  });
});

describe('retries', () => {
  test('retries come at growing intervals, up to a minute, and start at one second after a success', async () => {
    const { clock, driver, full, requests, engine } = fixture();
    driver.kernel = () => ({ retry: 'something is left' });
    let expected = 0;
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      await full();
      assert.deepEqual(engine.condition.retry, {
        dueAt: clock.now() + seconds * 1000,
        reason: 'something is left',
      });
      await clock.advance(seconds * 1000 - 1);
      assert.equal(requests(), expected);
      await clock.advance(1);
      assert.equal(requests(), ++expected);
    }
    driver.kernel = () => undefined;
    await full();
    assert.deepEqual(engine.condition, {});
    driver.kernel = () => ({ retry: 'again' });
    await full();
    assert.equal(engine.condition.retry?.dueAt, clock.now() + 1000);
  });

  test('a retry is a full sync, and partial syncs do not delay it', async () => {
    const { clock, driver, sync, calls, requests } = fixture();
    driver.kernel = () => ({ failures: new Map([['a', new Error('busy')]]) });
    await sync();
    driver.kernel = () => undefined;
    await clock.advance(900);
    await sync('b');
    await clock.advance(100);
    assert.equal(requests(), 1);
    await sync();
    assert.deepEqual(calls(), ['watch', 'all', 'changes b of w1', 'all']);
  });

  test('a retry for what a full sync left stays due until a full sync leaves nothing', async () => {
    const { clock, driver, sync, full, requests, engine } = fixture();
    driver.kernel = () => ({ retry: 'something is left' });
    await sync();
    driver.kernel = () => undefined;
    await sync('a');
    await clock.advance(1000);
    assert.equal(requests(), 1);
    await full();
    assert.deepEqual(engine.condition, {});
  });

  test('only temporary failures of service ports are retried; others wait for a change', async () => {
    const { clock, driver, sync, requests, engine } = fixture();
    driver.kernel = () => ({ failures: new Map([['a', new Error('wrong')]]) });
    await sync();
    assert.deepEqual(engine.condition, {});
    driver.kernel = () => ({ failures: new Map([['b', new Error('busy')]]) });
    await sync('b');
    assert.equal(engine.condition.retry?.reason, 'b: busy');
    driver.kernel = () => undefined;
    await sync('b');
    await clock.advance(60_000);
    assert.equal(requests(), 0);
  });

  test('when addresses cannot be listed, a sync uses the known ones and a retry follows', async () => {
    const { driver, addresses, sync, log, engine } = fixture();
    const used: (readonly string[])[] = [];
    driver.kernel = (_, wanted) => void used.push(wanted.addresses);
    await sync();
    addresses.list = () => Promise.reject(new Error('no netlink'));
    await sync();
    assert.deepEqual(used, [['192.0.2.1'], ['192.0.2.1']]);
    assert.match(
      log.lines.map(({ message }) => message).join(),
      /Failed to list interface addresses; using those known/,
    );
    assert.match(engine.condition.retry?.reason ?? '', /no netlink/);
  });

  test('stay due after addresses could not be listed, since changes need not reach all that depends on them', async () => {
    const { clock, addresses, sync, calls, requests, engine } = fixture({ relevant: false });
    const { list } = addresses;
    addresses.list = () => Promise.reject(new Error('no netlink'));
    await sync();
    addresses.list = list;
    await sync('a');
    await clock.advance(1000);
    assert.equal(requests(), 1);
    await sync();
    assert.deepEqual(calls(), ['watch', 'all', 'changes a of w1', 'all']);
    assert.deepEqual(engine.condition, {});
  });
});

describe('what other programs do', () => {
  test('damage is counted, and only the suspect parts are repaired', async () => {
    const { driver, sync, calls, requests, counted } = fixture();
    await sync();
    driver.signals?.changed(damage('frontends'));
    assert.equal(requests(), 1);
    assert.deepEqual(counted.splice(0), [[{ ip_family: 'IPv6', object: 'rule deleted' }, 2]]);
    await sync('a');
    assert.deepEqual(counted, [[{ ip_family: 'IPv6' }]]);
    await sync('b');
    assert.deepEqual(calls(), [
      'watch',
      'all',
      'repairing',
      'repair frontends and a of w1',
      'changes b of w2',
    ]);
  });

  test('everything is written when damage is of unknown extent, or when a repair does not succeed', async () => {
    const { clock, driver, sync, calls } = fixture();
    await sync();
    driver.signals?.changed(damage('frontends'));
    driver.signals?.changed(anyDamage);
    await sync();
    assert.deepEqual(calls(), ['watch', 'all', 'repairing', 'all']);
    await clock.advance(1000);
    driver.signals?.changed(damage('frontends'));
    driver.mayWritePart = false;
    await sync();
    assert.deepEqual(calls(), ['repairing', 'repair frontends and  of w2', 'all']);
  });

  test('damage during a sync is repaired by the next one', async () => {
    const { driver, sync, calls } = fixture();
    await sync();
    driver.kernel = () => void driver.signals?.changed(anyDamage);
    await sync('a');
    driver.kernel = () => undefined;
    await sync('b');
    assert.deepEqual(calls(), ['watch', 'all', 'changes a of w1', 'repairing', 'all']);
  });

  test('a repair of repeated damage waits for the end of a pause, while changes are written', async () => {
    const { clock, cpu, driver, sync, calls, requests, engine } = fixture();
    await sync();
    driver.signals?.changed(damage('frontends'));
    driver.kernel = () => {
      cpu.ms += 250;
      return undefined;
    };
    await sync();
    calls();
    const since = clock.now();
    driver.signals?.changed(damage('frontends'));
    await clock.advance(500);
    driver.signals?.changed({ ...damage('handlers'), by: 'nft[43]' });
    const wrong = { since, by: 'nft[43]', changes: 'rule deleted: 2' };
    assert.deepEqual(engine.condition.wrong, { ...wrong, dueAt: since + 1000 });
    assert.equal(requests(), 1);
    await sync('a');
    assert.match(calls().join(), /^changes a of/);
    await clock.advance(500);
    assert.equal(requests(), 2);
    assert.deepEqual(engine.condition.wrong, wrong);
    await sync();
    assert.match(calls().join(), /^repairing,repair frontends,handlers and {2}of/);
    assert.equal(engine.condition.wrong, undefined);
    assert.equal(engine.repairs.count, 2);
  });

  test('rules are wrong until a repair has succeeded', async () => {
    const { driver, sync, engine } = fixture();
    const wrong = () => engine.condition.wrong;
    await sync();
    driver.signals?.changed(anyDamage);
    assert.equal(wrong(), undefined, 'only a suspicion');
    driver.signals?.changed(damage('frontends'));
    driver.kernel = failing(new Error('out of memory'));
    await assert.rejects(sync());
    assert.equal(wrong()?.by, 'nft[42]');
    driver.kernel = () => void assert.ok(wrong());
    await sync();
    assert.equal(wrong(), undefined);
    assert.equal(engine.repairs.last?.by, 'nft[42]');
  });

  test('a full sync makes a repair that waits superfluous', async () => {
    const { clock, driver, sync, full, engine, requests } = fixture();
    await sync();
    driver.signals?.changed(damage('frontends'));
    await sync();
    driver.signals?.changed(damage('frontends'));
    assert.ok(engine.condition.wrong?.dueAt);
    await full();
    assert.equal(engine.condition.wrong, undefined);
    await clock.advance(60_000);
    assert.equal(requests(), 1);
  });
});

describe('full syncs that nothing else asks for', () => {
  test('a change of relevant addresses leads to a full sync', async () => {
    const { clock, addresses, sync, calls, requests } = fixture();
    await sync();
    await clock.advance(1_000);
    addresses.current = ['192.0.2.2'];
    addresses.onChange();
    await clock.advance(1_000);
    assert.equal(requests(), 1);
    await sync('a');
    assert.deepEqual(calls(), ['watch', 'all', 'all']);
  });

  test('addresses are listed but not watched where no change is relevant', async () => {
    const { sync, addresses } = fixture({ relevant: false });
    await sync();
    assert.deepEqual([addresses.lists, addresses.watches], [1, 0]);
  });

  test('a full sync follows a period after the last one, also after one that failed', async () => {
    const { clock, driver, sync, full, requests } = fixture();
    driver.fullSyncPeriodMs = 30_000;
    await sync();
    await clock.advance(29_999);
    await sync('a');
    assert.equal(requests(), 0);
    await clock.advance(1);
    assert.equal(requests(), 1);
    driver.kernel = failing(new Error('no'));
    await assert.rejects(full(), /no/);
    await clock.advance(30_000);
    assert.equal(requests(), 2);
  });
});

describe('the condition', () => {
  test('the condition is empty while all is well', async () => {
    const { engine, sync } = fixture();
    assert.deepEqual(engine.condition, {});
    await sync();
    assert.deepEqual(engine.condition, {});
  });

  test('the condition shows since when a sync is owed, and the last error', async () => {
    const { clock, driver, engine, sync } = fixture();
    await sync();
    const requestedAt = clock.now();
    driver.signals?.requestFullSync();
    await clock.advance(1000);
    assert.equal(engine.condition.syncOwedSince, requestedAt);
    driver.kernel = failing(new Error('no lock'));
    await assert.rejects(sync(), /no lock/);
    assert.deepEqual(engine.condition, {
      syncOwedSince: requestedAt,
      lastError: { at: clock.now(), message: 'no lock' },
    });
    const failedAt = clock.now();
    await clock.advance(1000);
    driver.kernel = () => undefined;
    await sync();
    assert.deepEqual(engine.condition, { lastError: { at: failedAt, message: 'no lock' } });
  });

  test('a sync that was requested during another one is still owed after it', async () => {
    const { clock, driver, engine, sync } = fixture();
    await sync();
    driver.signals?.requestFullSync();
    await clock.advance(1000);
    driver.kernel = () => void driver.signals?.requestFullSync();
    await sync();
    assert.equal(engine.condition.syncOwedSince, clock.now());
    driver.kernel = () => undefined;
    await sync();
    assert.deepEqual(engine.condition, {});
  });
});

describe('closing', () => {
  test('close ends watches, timers and requests, and then the driver', async () => {
    const { clock, driver, engine, sync, calls, requests, counted } = fixture();
    driver.fullSyncPeriodMs = 30_000;
    driver.kernel = () => ({ retry: 'something is left' });
    await sync();
    await engine.close();
    assert.deepEqual(calls(), ['watch', 'all', 'end watch', 'close']);
    assert.equal(clock.pending, 0);
    driver.signals?.changed(anyDamage);
    driver.signals?.requestFullSync();
    assert.deepEqual([requests(), counted], [0, []]);
  });

  test('close waits for a sync under way, which leaves no timer', async () => {
    const { clock, driver, engine, sync, calls } = fixture();
    driver.fullSyncPeriodMs = 30_000;
    const gate = Promise.withResolvers<undefined>();
    driver.kernel = async () => {
      await gate.promise;
      driver.calls.push('written');
      return undefined;
    };
    const syncing = sync();
    await clock.advance(0);
    const closing = engine.close();
    gate.resolve(undefined);
    await Promise.all([syncing, closing]);
    assert.deepEqual(calls(), ['watch', 'all', 'end watch', 'written', 'close']);
    assert.equal(clock.pending, 0);
  });
});
