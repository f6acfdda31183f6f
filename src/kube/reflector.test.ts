import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { silentLogger } from '../obs/log.ts';
import { ApiError, apiErrorOf, ConnectError, IdleError, TransportError } from './api-error.ts';
import { ServerPresence } from './list-watch.ts';
import { Reflector, type ReflectorTuning } from './reflector.ts';
import type { AnswerBody, RestClient, StreamRequest } from './rest-client.ts';

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

  async stream({ query = {}, signal }: StreamRequest): Promise<AnswerBody> {
    signal?.throwIfAborted();
    // Without this end, a reflector that asks without pause would never let the clock go on.
    const isEndless = this.queries.length >= 2000;
    if (!isEndless) {
      this.queries.push(query);
      this.times.push(this.#clock.now());
    }
    const body = isEndless ? silence(this.#clock, 600_000) : this.#answer(query);
    return Object.assign(body, { contentType: 'application/json' });
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

const addedAt = (resourceVersion: string) => ({
  type: 'ADDED',
  object: { metadata: { name: 'a', namespace: 'b', resourceVersion } },
});
const added = addedAt('4');

function reflect(
  answer: (query: Query, clock: FakeClock) => AsyncIterable<Uint8Array>,
  options: {
    random?: () => number;
    tuning?: Partial<ReflectorTuning>;
    streamsLists?: boolean;
    upsert?: () => void;
  } = {},
) {
  const clock = new FakeClock();
  const client = new FakeClient(clock, (query) => answer(query, clock));
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
    streamsLists: options.streamsLists ?? true,
  });
  return { clock, client, presence, reflector, finished: reflector.run() };
}

const gaps = (times: readonly number[]) => times.slice(1).map((time, i) => time - (times[i] ?? 0));

describe('waits between attempts', () => {
  test('double from 0.8 s to 30 s', async () => {
    const { clock, client, reflector, finished } = reflect(refuse(new ConnectError('down')));
    await clock.advance(200_000);
    assert.deepEqual(gaps(client.times).slice(0, 8), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
    reflector.stop();
    await finished;
    assert.equal(clock.pending, 0);
  });

  test('are stretched at random, up to twofold', async () => {
    const { clock, client, reflector, finished } = reflect(refuse(new ConnectError('down')), {
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

  test('that the server asks for are stretched at random, so that nodes do not return in step', async () => {
    const busy = new ApiError(429, 'TooManyRequests', 'busy', 7);
    const { clock, client, reflector, finished } = reflect(refuse(busy), { random: () => 0.5 });
    await clock.advance(9000);
    assert.deepEqual(gaps(client.times), [8750]);
    reflector.stop();
    await finished;
  });

  test('last a minute at most, even if the server asks for more', async () => {
    const busy = new ApiError(429, 'TooManyRequests', 'busy', 86_400);
    const { clock, client, reflector, finished } = reflect(refuse(busy));
    await clock.advance(130_000);
    assert.deepEqual(gaps(client.times), [60_000, 60_000]);
    reflector.stop();
    await finished;
  });

  test('start short again after an object, but not after a list alone', async () => {
    const withNews = [frames(bookmark('5', true)), frames(added), frames(added)];
    let calls = 0;
    const { clock, client, reflector, finished } = reflect(() => {
      calls++;
      if (calls % 4 !== 0) throw new ConnectError('down');
      return withNews.shift() ?? frames();
    });
    await clock.advance(60_000);
    // Three failures, a list (after which the watch is tried at once), three failures, an object, three failures, …
    assert.deepEqual(
      gaps(client.times).slice(0, 11),
      [800, 1600, 3200, 0, 6400, 12_800, 25_600, 1000, 800, 1600, 3200],
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

  test('follow a watch that brings one bookmark and ends, and grow', async () => {
    let version = 5;
    const { clock, client, reflector, finished } = reflect((query) =>
      frames(bookmark(String(version++), 'sendInitialEvents' in query)),
    );
    await clock.advance(6000);
    assert.deepEqual(gaps(client.times), [0, 800, 1600, 3200]);
    reflector.stop();
    await finished;
  });

  test('grow between lists also when every watch brings an object before its version expires', async () => {
    let version = 5;
    const { clock, client, reflector, finished } = reflect((query) =>
      'sendInitialEvents' in query
        ? frames(bookmark(String(version), true))
        : frames(addedAt(String(++version)), { type: 'ERROR', object: { kind: 'Status', code: 410 } }),
    );
    await clock.advance(120_000);
    const lists = client.times.filter((_, i) => 'sendInitialEvents' in (client.queries[i] ?? {}));
    // One in half a minute is due at once, and starts a row of others.
    assert.deepEqual(gaps(lists).slice(0, 7), [0, 800, 1600, 3200, 6400, 12_800, 25_600]);
    reflector.stop();
    await finished;
    assert.equal(clock.pending, 0);
  });

  test('let watches that bring objects and end at once begin once per second', async () => {
    let version = 5;
    const { clock, client, reflector, finished } = reflect((query) =>
      'sendInitialEvents' in query ? frames(bookmark('5', true)) : frames(addedAt(String(++version))),
    );
    await clock.advance(3500);
    assert.deepEqual(gaps(client.times), [0, 1000, 1000, 1000]);
    reflector.stop();
    await finished;
    assert.equal(clock.pending, 0);
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
      if (calls <= 5) throw new ConnectError('down');
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
      if (calls <= 4) throw new ConnectError('down');
      if (calls === 5) return frames(bookmark('5', true));
      if (calls === 6) return silence(clock, 60_000);
      throw new ConnectError('down');
    });
    await clock.advance(75_000);
    assert.deepEqual(gaps(client.times).slice(5, 8), [60_000, 800, 1600]);
    reflector.stop();
    await finished;
  });

  test('is retried as soon as it has answered another reflector, once', async () => {
    const { clock, client, presence, reflector, finished } = reflect(refuse(new ConnectError('down')));
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

test('three watches in a row with an event that cannot be read lead to a fresh list', async () => {
  async function* garbage(): AsyncGenerator<Uint8Array> {
    // A repeated event before it changes nothing.
    yield* frames(bookmark('5'));
    yield Buffer.from('{"type":"ADDED",\0');
  }
  const { clock, client, reflector, finished } = reflect((query) =>
    'sendInitialEvents' in query ? frames(bookmark('5', true)) : garbage(),
  );
  await clock.advance(30_000);
  const starts = client.queries.map(({ resourceVersion }) => resourceVersion ?? 'list');
  assert.deepEqual(starts.slice(0, 6), ['list', '5', '5', '5', 'list', '5']);
  assert.deepEqual(gaps(client.times).slice(0, 5), [0, 800, 1600, 3200, 0]);
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
    throw new ConnectError('down');
  });
  await clock.advance(200_000);
  const listed = client.queries.flatMap((query, i) => ('sendInitialEvents' in query ? [i] : []));
  assert.deepEqual(listed, [script.indexOf('list'), script.lastIndexOf('list')]);
  reflector.stop();
  await finished;
});

/** What a request asks for. */
function kindOf(query: Query): 'streamed list' | 'pages' | 'watch' {
  if ('sendInitialEvents' in query) return 'streamed list';
  return 'watch' in query ? 'watch' : 'pages';
}

const pages = () => frames({ metadata: { resourceVersion: '5' }, items: [] });

const errorEvent = (code: number) => ({
  type: 'ERROR',
  object: { kind: 'Status', code, reason: 'Any', message: 'RequestWatchProgress is disabled' },
});

async function* failing(error: Error, ...events: unknown[]): AsyncGenerator<Uint8Array> {
  yield* frames(...events);
  throw error;
}

describe('a streamed list that fails', () => {
  /** The requests of the first two seconds, and when each was sent. */
  const requestsAfter = async (stream: () => AsyncIterable<Uint8Array>) => {
    const { clock, client, reflector, finished } = reflect((query, clock) => {
      const kind = kindOf(query);
      if (kind === 'streamed list') return stream();
      return kind === 'pages' ? pages() : silence(clock, 600_000);
    });
    await clock.advance(2000);
    reflector.stop();
    await clock.advance(600_000);
    await finished;
    return client.queries.map((query, i) => [kindOf(query), gaps(client.times)[i - 1] ?? 0]);
  };

  const clear: Record<string, () => AsyncIterable<Uint8Array>> = {
    'an event with error 500': () => frames(added, errorEvent(500)),
    'an event with error 410': () => frames(errorEvent(410)),
    'an event with error 429': () => frames(errorEvent(429)),
    'an event with error 504': () => frames(errorEvent(504)),
    'the end of the stream': () => frames(added),
    'a cut connection': () => failing(new TransportError('aborted'), added),
    silence: () => failing(new IdleError('nothing received for 30 s'), added),
    'an unknown event': () => frames({ type: 'SHRUG', object: {} }),
    'status 400': refuse(new ApiError(400, 'BadRequest', 'no')),
    'status 404': refuse(new ApiError(404, 'NotFound', 'no')),
    'status 410': refuse(new ApiError(410, 'Expired', 'no')),
    'status 422': refuse(new ApiError(422, 'Invalid', 'no')),
    'status 500': refuse(new ApiError(500, 'InternalError', 'no')),
    'status 501': refuse(new ApiError(501, 'NotImplemented', 'no')),
  };
  for (const [name, stream] of Object.entries(clear)) {
    test(`by ${name} is followed by a list in pages at once`, async () => {
      const expected = [
        ['streamed list', 0],
        ['pages', 0],
        ['watch', 0],
      ];
      assert.deepEqual(await requestsAfter(stream), expected);
    });
  }

  const vague: Record<string, Error> = {
    'a reset connection': new TransportError('read ECONNRESET'),
    'a time-out': new TransportError('the answer was not complete after 30 s'),
    'status 403': new ApiError(403, 'Forbidden', 'no'),
    'status 429': new ApiError(429, 'TooManyRequests', 'busy'),
    'status 503': new ApiError(503, '', 'away'),
  };
  for (const [name, error] of Object.entries(vague)) {
    test(`by ${name} is followed by a list in pages after the usual wait`, async () => {
      const expected = [
        ['streamed list', 0],
        ['pages', 800],
        ['watch', 0],
      ];
      assert.deepEqual(await requestsAfter(refuse(error)), expected);
    });
  }

  test('because no connection could be made is tried again', async () => {
    const expected = [
      ['streamed list', 0],
      ['streamed list', 800],
    ];
    assert.deepEqual(await requestsAfter(refuse(new ConnectError('ECONNREFUSED'))), expected);
  });

  test('because its events go on without an end is followed by a list in pages after five minutes', async () => {
    async function* busy(clock: FakeClock): AsyncGenerator<Uint8Array> {
      for (;;) {
        yield* silence(clock, 5000);
        yield* frames(added);
      }
    }
    const { clock, client, reflector, finished } = reflect((query, clock) => {
      const kind = kindOf(query);
      if (kind === 'streamed list') return busy(clock);
      return kind === 'pages' ? pages() : silence(clock, 600_000);
    });
    await clock.advance(310_000);
    assert.deepEqual(client.queries.map(kindOf), ['streamed list', 'pages', 'watch']);
    assert.deepEqual(gaps(client.times), [305_000, 0]);
    reflector.stop();
    await clock.advance(600_000);
    await finished;
  });
});

describe('a streamed list that fails when objects are known', () => {
  /** The requests after the first watch expired, and how long each waited for the one before. */
  const requestsAfter = async (stream: () => AsyncIterable<Uint8Array>) => {
    let isFirst = true;
    const { clock, client, reflector, finished } = reflect((query, clock) => {
      const kind = kindOf(query);
      if (kind === 'pages') return pages();
      if (kind === 'watch') return silence(clock, 600_000);
      if (!isFirst) return stream();
      isFirst = false;
      return frames(bookmark('5', true), errorEvent(410));
    });
    await clock.advance(10_000);
    reflector.stop();
    await clock.advance(600_000);
    await finished;
    return client.queries.map((query, i) => [kindOf(query), gaps(client.times)[i - 1] ?? 0]).slice(1);
  };

  const behind = new ApiError(504, 'Timeout', 'Too large resource version: 9, current: 7');
  const passing: Record<string, () => AsyncIterable<Uint8Array>> = {
    'the end of the stream': () => frames(added),
    'a cut connection': () => failing(new TransportError('aborted'), added),
    silence: () => failing(new IdleError('nothing received for 150 s'), added),
    'a time-out': refuse(new TransportError('the answer was not complete after 75 s')),
    'an event with error 429': () => frames(errorEvent(429)),
    'status 429': refuse(new ApiError(429, 'TooManyRequests', 'busy')),
    'status 503': refuse(new ApiError(503, '', 'away')),
    'status 504 of a cache that is behind etcd': refuse(behind),
  };
  for (const [name, stream] of Object.entries(passing)) {
    test(`by ${name} is streamed again after the usual wait, and after three failures comes in pages`, async () => {
      assert.deepEqual(await requestsAfter(stream), [
        ['streamed list', 0],
        ['streamed list', 800],
        ['streamed list', 1600],
        ['pages', 3200],
        ['watch', 0],
      ]);
    });
  }

  test('because the server cannot stream is followed by a list in pages at once', async () => {
    assert.deepEqual(await requestsAfter(refuse(new ApiError(422, 'Invalid', 'no'))), [
      ['streamed list', 0],
      ['pages', 0],
      ['watch', 0],
    ]);
  });
});

describe('after a streamed list failed', () => {
  /** Lists again every `everyMs`, because the watches expire. Returns what each list was, and when. */
  const lists = async (everyMs: number, forMs: number, canStream: (now: number) => boolean) => {
    const begin = new FakeClock().now();
    const { clock, client, reflector, finished } = reflect((query, clock) => {
      const kind = kindOf(query);
      const now = clock.now() - begin;
      if (kind === 'streamed list')
        return canStream(now) ? frames(bookmark('5', true)) : frames(errorEvent(500));
      if (kind === 'pages') return pages();
      return (async function* () {
        yield* silence(clock, everyMs);
        yield* frames(errorEvent(410));
      })();
    });
    await clock.advance(forMs);
    reflector.stop();
    await clock.advance(everyMs);
    await finished;
    return client.queries.flatMap((query, i) =>
      kindOf(query) === 'watch' ? [] : [`${kindOf(query)} ${((client.times[i] ?? 0) - begin) / 60_000}`],
    );
  };

  test('by a passing fault, lists are streamed again after a minute', async () => {
    const isWell = (now: number) => now < 60_000 || now > 150_000;
    assert.deepEqual(await lists(40_000, 250_000, isWell), [
      'streamed list 0',
      `streamed list ${2 / 3}`,
      `streamed list ${4 / 3}`,
      `pages ${4 / 3}`,
      'pages 2',
      `streamed list ${8 / 3}`,
      `streamed list ${10 / 3}`,
      'streamed list 4',
    ]);
  });

  test('the pause doubles with each failure up to an hour', async () => {
    const all = await lists(60_000, 5 * 3_600_000, () => false);
    const streamed = all.filter((list) => list.startsWith('streamed')).map((list) => Number(list.slice(14)));
    assert.deepEqual(streamed, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
  });
});

test('a reflector that is not to stream lists asks for pages only', async () => {
  const { clock, client, reflector, finished } = reflect(
    (query) => {
      if (kindOf(query) === 'pages') return pages();
      throw new ApiError(500, 'InternalError', 'tired');
    },
    { streamsLists: false },
  );
  await clock.advance(60_000);
  assert.ok(client.queries.filter((query) => kindOf(query) === 'pages').length > 1);
  assert.ok(client.queries.every((query) => kindOf(query) !== 'streamed list'));
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
    const { clock, client, reflector, finished } = reflect(refuse(new ConnectError('down')), {
      random: () => random,
    });
    await clock.advance(1);
    assert.equal(client.queries[0]?.timeoutSeconds, seconds);
    reflector.stop();
    await finished;
  }
});

test('a sink that throws ends the run with its error', async () => {
  const { finished } = reflect(() => frames(added), {
    upsert: () => {
      throw new Error('defect');
    },
  });
  await assert.rejects(finished, /defect/);
});
