import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { silentLogger } from '../obs/log.ts';
import { ApiError, apiErrorOf, IdleError, TransportError } from './api-error.ts';
import { ServerPresence } from './list-watch.ts';
import { Reflector, type ReflectorTuning } from './reflector.ts';
import type { RestClient, StreamRequest } from './rest-client.ts';

type Query = Readonly<Record<string, string>>;

/** A client whose streams come from a function. */
class FakeClient implements RestClient {
  readonly queries: Query[] = [];
  readonly times: number[] = [];
  readonly #clock: FakeClock;
  readonly #answer: (query: Query) => AsyncIterable<Uint8Array>;

  constructor(clock: FakeClock, answer: (query: Query) => AsyncIterable<Uint8Array>) {
    this.#clock = clock;
    this.#answer = answer;
  }

  request(): Promise<never> {
    return Promise.reject(new Error('not used'));
  }

  async stream({ query = {}, signal }: StreamRequest): Promise<AsyncIterable<Uint8Array>> {
    signal?.throwIfAborted();
    this.queries.push(query);
    this.times.push(this.#clock.now());
    return this.#answer(query);
  }

  close(): void {}
}

async function* frames(...events: unknown[]): AsyncGenerator<Uint8Array> {
  for (const event of events) yield Buffer.from(`${JSON.stringify(event)}\n`);
}

const refuse = (error: Error) => () => {
  throw error;
};

const bookmark = (version: string, end = false) => ({
  type: 'BOOKMARK',
  object: {
    metadata: {
      resourceVersion: version,
      ...(end && { annotations: { 'k8s.io/initial-events-end': 'true' } }),
    },
  },
});

function reflect(
  answer: (query: Query) => AsyncIterable<Uint8Array>,
  options: { random?: () => number; tuning?: Partial<ReflectorTuning>; upsert?: () => void } = {},
) {
  const clock = new FakeClock();
  const client = new FakeClient(clock, answer);
  const presence = new ServerPresence();
  const reflector = new Reflector({
    client,
    presence,
    clock,
    resource: 'services',
    target: { path: '/api/v1/services' },
    random: options.random ?? (() => 0),
    logger: silentLogger,
    intern: (text) => text,
    sink: { upsert: options.upsert ?? (() => {}), remove() {}, synced() {} },
    ...(options.tuning && { tuning: options.tuning }),
  });
  return { clock, client, presence, reflector, finished: reflector.run() };
}

const gaps = (times: readonly number[]) => times.slice(1).map((time, i) => time - (times[i] ?? 0));

describe('waits between attempts', () => {
  test('double from 0.8 s to 30 s', async () => {
    const { clock, client, reflector, finished } = reflect(refuse(new TransportError('down')));
    await clock.advance(200_000);
    assert.deepEqual(gaps(client.times).slice(0, 8), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
    reflector.stop();
    await finished;
    assert.equal(clock.pending, 0);
  });

  test('are stretched at random, up to twofold', async () => {
    const { clock, client, reflector, finished } = reflect(refuse(new TransportError('down')), {
      random: () => 0.5,
    });
    await clock.advance(10_000);
    assert.deepEqual(gaps(client.times).slice(0, 3), [1200, 2400, 4800]);
    reflector.stop();
    await finished;
  });

  test('are as long as the server asks', async () => {
    const busy = new ApiError(429, 'TooManyRequests', 'busy', 7);
    const { clock, client, reflector, finished } = reflect(refuse(busy));
    await clock.advance(8000);
    assert.deepEqual(gaps(client.times), [7000]);
    reflector.stop();
    await finished;
  });

  test('start short again after an event, but not after a list alone', async () => {
    const withNews = [frames(bookmark('5', true)), frames(bookmark('6')), frames(bookmark('7'))];
    let calls = 0;
    const { clock, client, reflector, finished } = reflect(() => {
      calls++;
      if (calls % 4 !== 0) throw new TransportError('down');
      return withNews.shift() ?? frames();
    });
    await clock.advance(60_000);
    // Three failures, a list (after which the watch is tried at once), three failures, news, three failures, …
    assert.deepEqual(
      gaps(client.times).slice(0, 11),
      [800, 1600, 3200, 0, 6400, 12_800, 25_600, 0, 800, 1600, 3200],
    );
    reflector.stop();
    await finished;
  });

  test('follow a watch that ends at once without an event', async () => {
    const { clock, client, reflector, finished } = reflect((query) =>
      'sendInitialEvents' in query ? frames(bookmark('5', true)) : frames(),
    );
    await clock.advance(2500);
    assert.deepEqual(gaps(client.times), [0, 800, 1600]);
    reflector.stop();
    await finished;
  });
});

/** A watch that the server ends after a while. */
async function* silence(clock: FakeClock, ms: number): AsyncGenerator<Uint8Array> {
  await new Promise<void>((resolve) => clock.setTimeout(resolve, ms));
}

/** A watch that brings some events and then nothing, until patience ends. */
async function* stalled(clock: FakeClock, ...events: unknown[]): AsyncGenerator<Uint8Array> {
  yield* frames(...events);
  yield* silence(clock, 150_000);
  throw new IdleError('nothing received for 150 s');
}

const expired = new ApiError(410, 'Expired', 'too old resource version: 5 (9)');

describe('a server that comes back from a restart', () => {
  test('without history is asked for a list at once, regardless of earlier waits', async () => {
    let calls = 0;
    const { clock, client, reflector, finished } = reflect(() => {
      calls++;
      if (calls === 1) return frames(bookmark('5', true));
      if (calls <= 5) throw new TransportError('down');
      if (calls === 6) return frames({ type: 'ERROR', object: { kind: 'Status', code: 410 } });
      return calls === 7 ? frames(bookmark('9', true)) : silence(clock, 600_000);
    });
    await clock.advance(30_000);
    assert.deepEqual(gaps(client.times), [0, 800, 1600, 3200, 6400, 0, 0]);
    assert.deepEqual(
      client.queries.map((query) => 'sendInitialEvents' in query),
      [true, false, false, false, false, false, true, false],
    );
    reflector.stop();
    await clock.advance(600_000);
    await finished;
  });

  test('but expires every version that it gives is not asked without pause', async () => {
    const { clock, client, reflector, finished } = reflect((query) => {
      if ('sendInitialEvents' in query) return frames(bookmark('5', true));
      throw expired;
    });
    await clock.advance(10_000);
    assert.deepEqual(gaps(client.times).slice(0, 7), [0, 0, 0, 800, 0, 1600, 0]);
    reflector.stop();
    await finished;
  });

  test('after it ended a long watch regularly is retried with the shortest wait', async () => {
    let calls = 0;
    const { clock, client, reflector, finished } = reflect(() => {
      calls++;
      if (calls <= 4) throw new TransportError('down');
      if (calls === 5) return frames(bookmark('5', true));
      if (calls === 6) return silence(clock, 60_000);
      throw new TransportError('down');
    });
    await clock.advance(75_000);
    assert.deepEqual(gaps(client.times).slice(5, 8), [60_000, 800, 1600]);
    reflector.stop();
    await finished;
  });

  test('is retried as soon as it has answered another reflector, once', async () => {
    const { clock, client, presence, reflector, finished } = reflect(refuse(new TransportError('down')));
    await clock.advance(30_000);
    for (let i = 0; i < 5; i++) {
      presence.answered();
      await clock.advance(1);
    }
    assert.deepEqual(gaps(client.times), [800, 1600, 3200, 6400, 12_800, 5200]);
    reflector.stop();
    await finished;
    assert.equal(clock.pending, 0);
  });

  test('is not asked before its Retry-After, also when it answers others', async () => {
    const busy = new ApiError(429, 'TooManyRequests', 'busy', 7);
    const { clock, client, presence, reflector, finished } = reflect(refuse(busy));
    await clock.advance(10);
    presence.answered();
    await clock.advance(8000);
    assert.deepEqual(gaps(client.times), [7000]);
    reflector.stop();
    await finished;
  });
});

describe('a watch that receives nothing for the idle time', () => {
  const startsOfWatches = async (...events: unknown[]) => {
    let calls = 0;
    const { clock, client, reflector, finished } = reflect(() => {
      calls++;
      return calls === 1 ? frames(bookmark('50', true)) : stalled(clock, ...events);
    });
    await clock.advance(200_000);
    reflector.stop();
    await clock.advance(200_000);
    await finished;
    return client.queries.map(({ resourceVersion }) => resourceVersion ?? 'list');
  };

  test('is followed by a watch from its last version when it had events', async () => {
    assert.deepEqual(await startsOfWatches(bookmark('60')), ['list', '50', '60']);
  });

  test('is followed by a list when it had none: the server may have been restored', async () => {
    assert.deepEqual(await startsOfWatches(), ['list', '50', 'list']);
  });
});

test('three refusals in a row that are not expiry lead to a fresh list', async () => {
  let calls = 0;
  const { clock, client, reflector, finished } = reflect(() => {
    calls++;
    if (calls === 1) return frames(bookmark('5', true));
    throw new ApiError(500, 'InternalError', 'tired');
  });
  await clock.advance(10_000);
  const lists = client.queries.map((query) => 'sendInitialEvents' in query);
  assert.deepEqual(lists.slice(0, 5), [true, false, false, false, true]);
  reflector.stop();
  await finished;
});

describe('temporary refusals do not lead to a list', () => {
  const startsOfWatches = async (error: ApiError) => {
    let calls = 0;
    const { clock, client, reflector, finished } = reflect(() => {
      calls++;
      if (calls === 1) return frames(bookmark('5', true));
      throw error;
    });
    await clock.advance(10_000);
    reflector.stop();
    await finished;
    return client.queries.slice(0, 5).map(({ resourceVersion }) => resourceVersion ?? 'list');
  };

  for (const status of [401, 403, 429, 502, 503, 504]) {
    test(`${status}: the server is away, busy or cannot authenticate us yet`, async () => {
      const error = apiErrorOf(status, { kind: 'Status', reason: 'Any', message: 'come back later' });
      assert.deepEqual(await startsOfWatches(error), ['list', '5', '5', '5', '5']);
    });
  }

  test('except a 504 for a version that the server has not reached', async () => {
    const message = 'Timeout: Too large resource version: 5, current: 3';
    const error = apiErrorOf(504, { kind: 'Status', reason: 'Timeout', message });
    assert.deepEqual(await startsOfWatches(error), ['list', '5', '5', '5', 'list']);
  });
});

test('refusals with an event or a list between them do not add up', async () => {
  const script = [
    'list',
    'refuse',
    'refuse',
    'news',
    'refuse',
    'refuse',
    'refuse',
    'list',
    'refuse',
    'refuse',
    'end',
  ];
  let calls = 0;
  const { clock, client, reflector, finished } = reflect(() => {
    const next = script[calls++];
    if (next === 'list') return frames(bookmark('5', true));
    if (next === 'news') return frames(bookmark('6'));
    if (next === 'refuse') throw new ApiError(500, 'InternalError', 'tired');
    throw new TransportError('down');
  });
  await clock.advance(200_000);
  const listed = client.queries.flatMap((query, i) => ('sendInitialEvents' in query ? [i] : []));
  assert.deepEqual(listed, [script.indexOf('list'), script.lastIndexOf('list')]);
  reflector.stop();
  await finished;
});

test('a list without a version, or with an unchanging continue token, is refused', async () => {
  let calls = 0;
  const { clock, client, reflector, finished } = reflect((query) => {
    if ('watch' in query) throw new ApiError(422, 'Invalid', 'no streaming');
    calls++;
    const metadata = calls === 1 ? {} : { resourceVersion: '5', continue: 'again' };
    return frames({ metadata, items: [] });
  });
  await clock.advance(5000);
  assert.ok(
    client.queries.every((query) => !('resourceVersion' in query)),
    'no watch began',
  );
  assert.ok(client.queries.length < 12, `asked ${client.queries.length} times`);
  reflector.stop();
  await finished;
});

test('a watch asks for a random time-out between five and ten minutes', async () => {
  for (const [random, seconds] of [
    [0, '300'],
    [0.5, '450'],
    [0.999, '600'],
  ] as const) {
    const { clock, client, reflector, finished } = reflect(refuse(new TransportError('down')), {
      random: () => random,
    });
    await clock.advance(1);
    assert.equal(client.queries[0]?.timeoutSeconds, seconds);
    reflector.stop();
    await finished;
  }
});

test('a sink that throws ends the run with its error', async () => {
  const added = { type: 'ADDED', object: { metadata: { name: 'a', namespace: 'b', resourceVersion: '4' } } };
  const { finished } = reflect(() => frames(added), {
    upsert: () => {
      throw new Error('defect');
    },
  });
  await assert.rejects(finished, /defect/);
});
