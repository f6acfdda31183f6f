import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { serveHttp } from '../../test/serve-http.ts';
import { createRouter } from '../http/router.ts';
import { type Clock, systemClock } from '../lib/clock.ts';
import { silentLogger } from '../obs/log.ts';
import { cpuProfileToPprof, heapProfileToPprof } from './pprof-format.ts';
import { pprofRoutes } from './pprof-page.ts';

type Field = [number: number, value: bigint | Uint8Array];

/** Reads the fields of one message, as far as our writer uses the format. */
function readMessage(bytes: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++] ?? assert.fail('truncated');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    assert.ok([0, 2].includes(tag & 7), `wire type ${tag & 7}`);
    if ((tag & 7) === 0) {
      fields.push([tag >> 3, varint()]);
    } else {
      const length = Number(varint());
      fields.push([tag >> 3, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}

const all = (fields: Field[], number: number) =>
  fields.filter(([n]) => n === number).map(([, value]) => value);
const message = (value: bigint | Uint8Array | undefined) =>
  readMessage(value instanceof Uint8Array ? value : assert.fail('not a message'));
const number = (value: bigint | Uint8Array | undefined) =>
  typeof value === 'bigint' ? Number(value) : assert.fail('not a number');

/** Packed numbers of a field. */
function numbers(value: bigint | Uint8Array | undefined): number[] {
  const packed = value instanceof Uint8Array ? value : assert.fail('not packed');
  const found: number[] = [];
  let current = 0n;
  let shift = 0n;
  for (const byte of packed) {
    current |= BigInt(byte & 0x7f) << shift;
    shift += 7n;
    if (byte < 0x80) {
      found.push(Number(current));
      current = 0n;
      shift = 0n;
    }
  }
  return found;
}

/** A profile as text: `name < caller: values` per sample, and its sample types. */
function explain(bytes: Uint8Array) {
  const fields = readMessage(bytes);
  const strings = all(fields, 6).map((text) => Buffer.from(text as Uint8Array).toString());
  assert.equal(strings[0], '', 'the string table starts with the empty string');
  const text = (value: bigint | Uint8Array | undefined) =>
    strings[number(value)] ?? assert.fail('no such string');
  const functions = new Map(
    all(fields, 5).map((value) => {
      const fn = message(value);
      return [
        number(all(fn, 1)[0]),
        `${text(all(fn, 2)[0])}@${text(all(fn, 4)[0])}:${number(all(fn, 5)[0])}`,
      ];
    }),
  );
  const locations = new Map(
    all(fields, 4).map((value) => {
      const location = message(value);
      const line = message(all(location, 4)[0]);
      return [
        number(all(location, 1)[0]),
        functions.get(number(all(line, 1)[0])) ?? assert.fail('no function'),
      ];
    }),
  );
  const samples = all(fields, 2).map((value) => {
    const sample = message(value);
    const stack = numbers(all(sample, 1)[0]).map((id) => locations.get(id) ?? assert.fail('no location'));
    return `${stack.join(' < ')}: ${numbers(all(sample, 2)[0]).join(' ')}`;
  });
  const types = all(fields, 1).map((value) => {
    const type = message(value);
    return `${text(all(type, 1)[0])}/${text(all(type, 2)[0])}`;
  });
  return { samples, types, fields };
}

const frame = (functionName: string, url = '', lineNumber = -1) => ({
  functionName,
  scriptId: url,
  url,
  lineNumber,
  columnNumber: 0,
});

test('a CPU profile becomes stacks with counts and time, without idle time', () => {
  const profile = cpuProfileToPprof(
    {
      nodes: [
        { id: 1, callFrame: frame('(root)'), children: [2, 3] },
        { id: 2, callFrame: frame('(idle)') },
        { id: 3, callFrame: frame('main', 'file:///main.ts', 9), children: [4] },
        { id: 4, callFrame: frame('', 'file:///work.ts', 0) },
      ],
      startTime: 1_000,
      endTime: 6_000,
      samples: [4, 2, 4, 3],
      timeDeltas: [100, 1000, 2000, 300],
    },
    1_700_000_000_000,
  );
  const { samples, types, fields } = explain(profile);
  assert.deepEqual(types, ['samples/count', 'cpu/nanoseconds']);
  assert.deepEqual(samples, [
    '(anonymous)@file:///work.ts:1 < main@file:///main.ts:10: 2 1300000',
    'main@file:///main.ts:10: 1 0',
  ]);
  assert.deepEqual(all(fields, 9), [1_700_000_000_000_000_000n]);
  assert.deepEqual(all(fields, 10), [5_000_000n]);
});

test('a heap profile becomes stacks with bytes', () => {
  const leaf = { id: 3, callFrame: frame('leaf', 'file:///a.ts', 4), selfSize: 2048, children: [] };
  const outer = { id: 2, callFrame: frame('outer', 'file:///a.ts', 1), selfSize: 0, children: [leaf] };
  const head = { id: 1, callFrame: frame('(root)'), selfSize: 0, children: [outer] };
  const profile = heapProfileToPprof(
    { head },
    { startMs: 1, durationMs: 2, interval: 512, type: 'inuse_space' },
  );
  const { samples, types, fields } = explain(profile);
  assert.deepEqual(types, ['inuse_space/bytes']);
  assert.deepEqual(samples, ['leaf@file:///a.ts:5 < outer@file:///a.ts:2: 2048']);
  assert.deepEqual(all(fields, 12), [512n]);
});

async function serve(t: TestContext, clock: Clock): Promise<string> {
  return (await serveHttp(t, createRouter(pprofRoutes(clock), silentLogger))).url;
}

function busyWork(n: number): number {
  return n < 2 ? n : busyWork(n - 1) + busyWork(n - 2);
}

/** Takes a profile during `work`. The clock stands still, so that a stall of the machine cannot end the profile early. */
async function profileOf(t: TestContext, kind: string, work: () => void): Promise<Response> {
  const clock = new FakeClock();
  const response = fetch(`${await serve(t, clock)}/debug/pprof/${kind}?seconds=1`);
  await eventually('a profile is being taken', () => clock.pending > 0);
  work();
  await clock.advance(1_000);
  return response;
}

test('a CPU profile of this process names the busy function', async (t) => {
  const response = await profileOf(t, 'profile', () => {
    const end = process.cpuUsage().user + 300_000;
    while (process.cpuUsage().user < end) busyWork(24);
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/octet-stream');
  const { samples } = explain(gunzipSync(await response.arrayBuffer()));
  assert.ok(samples.some((sample) => /^busyWork@.*pprof-page\.test\.ts:\d+ < /.test(sample)));
});

test('a heap profile of this process names the allocating function', async (t) => {
  const kept: unknown[] = [];
  function hoard() {
    for (let i = 0; i < 300_000; i++) kept.push({ i, list: [i] });
  }
  for (const [kind, type] of [
    ['heap', 'inuse_space/bytes'],
    ['allocs', 'alloc_space/bytes'],
  ] as const) {
    const response = await profileOf(t, kind, hoard);
    const { samples, types } = explain(gunzipSync(await response.arrayBuffer()));
    assert.deepEqual(types, [type]);
    assert.ok(
      samples.some((sample) => sample.startsWith('hoard@')),
      kind,
    );
  }
});

test('only one profile is taken at a time, and it ends early when its client disconnects', async (t) => {
  const clock = new FakeClock();
  const url = await serve(t, clock);
  const gone = new AbortController();
  const first = fetch(`${url}/debug/pprof/profile?seconds=30`, { signal: gone.signal });
  const isTaken = () => clock.pending > 0;
  await eventually('a profile is being taken', isTaken);
  const second = await fetch(`${url}/debug/pprof/heap`);
  assert.equal(second.status, 409);
  assert.match(await second.text(), /another profile is being taken/);
  gone.abort();
  await assert.rejects(first);
  await eventually('the profile ends', () => clock.pending === 0);

  const again = fetch(`${url}/debug/pprof/profile`);
  await eventually('another is being taken', isTaken);
  await clock.advance(29_999);
  assert.equal(clock.pending, 1, 'thirty seconds unless asked otherwise');
  await clock.advance(1);
  assert.equal((await again).status, 200);
});

test('invalid durations and unknown profiles are refused', async (t) => {
  const url = await serve(t, systemClock);
  for (const seconds of ['0', '-1', 'x', '301', 'NaN', 'Infinity', '']) {
    const response = await fetch(`${url}/debug/pprof/profile?seconds=${seconds}`);
    assert.equal(response.status, 400, seconds);
  }
  const unknown = await fetch(`${url}/debug/pprof/goroutine`);
  assert.equal(unknown.status, 404);
  assert.equal(await unknown.text(), 'Unknown profile\n');
  const bare = await fetch(`${url}/debug/pprof`, { redirect: 'manual' });
  assert.equal(bare.status, 302);
  assert.equal(bare.headers.get('location'), '/debug/pprof/');
});
