import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Journal, type JournalNote } from './journal.ts';
import { isServiceNamed, journalReport, selectFromJournal } from './journal-report.ts';
import { QuestionError } from './question.ts';

const MINUTE = 60_000;

function setup(keptBytes?: number) {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const journal = new Journal(clock, keptBytes);
  return { clock, journal };
}

function sync(services: readonly string[], more: Partial<JournalNote> = {}): JournalNote {
  return {
    event: 'Sync',
    family: 'IPv4',
    services: services.map((service) => ({ service, latencyMs: 20 })),
    sync: { kind: 'partial', durationMs: 2, servicePorts: services.length, waitMs: 3, latencyMs: 20 },
    ...more,
  };
}

test('the journal forgets what is older than an hour, and says since when it is complete', async () => {
  const { clock, journal } = setup();
  const start = clock.now();
  journal.note({ event: 'Start', text: 'started' });
  assert.equal(journal.completeSince, start);
  await clock.advance(59 * MINUTE);
  journal.note(sync(['shop/web']));
  assert.deepEqual(
    journal.entries().map(({ event }) => event),
    ['Start', 'Sync'],
  );
  await clock.advance(2 * MINUTE);
  assert.deepEqual(
    journal.entries().map(({ event }) => event),
    ['Sync'],
  );
  assert.equal(journal.completeSince, start + 1 * MINUTE);
});

test('the journal forgets after an hour also when the clock was set back by a day', async () => {
  const { clock, journal } = setup();
  journal.note({ event: 'Start', text: 'started' });
  clock.setWall(-24 * 60 * MINUTE);
  assert.equal(journal.completeSince, clock.now());
  await clock.advance(30 * MINUTE);
  journal.note(sync(['shop/web']));
  await clock.advance(31 * MINUTE);
  assert.deepEqual(
    journal.entries().map(({ event }) => event),
    ['Sync'],
  );
});

test('syncs of one second share an entry with the longest times and the first few Services', async () => {
  const { clock, journal } = setup();
  for (let i = 0; i < 500; i++) {
    const latencyMs = i === 250 ? 90 : 20;
    journal.note({
      ...sync([]),
      services: [{ service: `shop/s${i % 20}`, latencyMs }],
      sync: { kind: 'partial', durationMs: i === 100 ? 7 : 2, servicePorts: 1, waitMs: 3, latencyMs },
    });
    await clock.advance(1);
  }
  const [entry, ...others] = journal.entries();
  assert.deepEqual(others, []);
  assert.deepEqual([entry?.count, entry?.services.length], [500, 8]);
  assert.deepEqual(entry?.sync, {
    kind: 'partial',
    durationMs: 7,
    servicePorts: 500,
    waitMs: 3,
    latencyMs: 90,
  });
  assert.ok((entry?.serviceCount ?? 0) >= 20);
  await clock.advance(500);
  journal.note(sync(['shop/web']));
  assert.equal(journal.entries().length, 2);
});

test('a Service that changes again within a second is named once, with its longest latency', () => {
  const { journal } = setup();
  for (const latencyMs of [undefined, 30, 10]) {
    journal.note({ ...sync([]), services: [{ service: 'shop/web', latencyMs }] });
  }
  const [entry] = journal.entries();
  assert.deepEqual([entry?.services, entry?.serviceCount], [[{ service: 'shop/web', latencyMs: 30 }], 1]);
});

test('families, kinds of sync and different events have entries of their own', () => {
  const { journal } = setup();
  journal.note(sync(['shop/web']));
  journal.note(sync(['shop/web'], { family: 'IPv6' }));
  journal.note(sync([], { sync: { kind: 'full', durationMs: 1, servicePorts: 0, waitMs: 1, latencyMs: 1 } }));
  journal.note({ event: 'SyncFailed', family: 'IPv4', text: 'ENOBUFS' });
  assert.equal(journal.entries().length, 4);
});

test('an entry keeps few texts, and cuts long ones', () => {
  const { journal } = setup();
  for (let i = 0; i < 10_000; i++)
    journal.note({ event: 'NotProgrammed', text: `${i} ${'x'.repeat(2_000)}` });
  const [entry, ...others] = journal.entries();
  assert.deepEqual([others, entry?.count, entry?.texts.length], [[], 10_000, 4]);
  assert.ok(entry?.texts.every(({ length }) => length <= 501));
});

test('beyond its size the journal forgets the oldest entries, and tells since when it is complete', async () => {
  const { clock, journal } = setup(10_000);
  for (let i = 0; i < 100; i++) {
    journal.note(sync([`shop/s${i}`]));
    await clock.advance(1_000);
  }
  const entries = journal.entries();
  assert.ok(entries.length > 10 && entries.length < 30, String(entries.length));
  assert.equal(entries.at(-1)?.services[0]?.service, 'shop/s99');
  assert.equal(journal.completeSince, entries[0]?.time);
});

test('a report is selected by Service and time; entries that name too few Services are counted', async () => {
  const { clock, journal } = setup();
  journal.note({ event: 'Start', text: 'started' });
  journal.note(sync(['shop/web', 'blog/web']));
  await clock.advance(10 * MINUTE);
  journal.note(sync(['shop/cart'], { serviceCount: 30 }));
  const report = journalReport(journal, clock.now());
  const select = (name: string, since?: string) => {
    const { items, unnamed } = selectFromJournal(report, since, (service) =>
      isServiceNamed(service, { name }),
    );
    return [items.length, unnamed];
  };
  for (const name of ['web', 'shop/web', 'shop/web:80', 'shop/web:http/TCP', 'blog/web']) {
    assert.deepEqual(select(name), [1, 1], name);
  }
  assert.deepEqual(select('shop/cart'), [1, 0]);
  assert.deepEqual(select('web', '5m'), [0, 1]);
  assert.equal(selectFromJournal(report, '5m', undefined).items.length, 1);
  assert.equal(selectFromJournal(report, '2026-01-01T00:05:00Z', undefined).items.length, 1);
  assert.equal(selectFromJournal(report, '', undefined).items.length, 3);
  assert.throws(() => selectFromJournal(report, 'yesterday', undefined), QuestionError);
});
