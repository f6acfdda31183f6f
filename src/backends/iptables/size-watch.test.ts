import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { silentLogger } from '../../obs/log.ts';
import { SizeWatch } from './size-watch.ts';

function fixture() {
  const clock = new FakeClock();
  const entries: Record<string, number> = { nat: 5, filter: 4, mangle: 6 };
  const errors: string[] = [];
  let suspicions = 0;
  let isBroken = false;
  let isClosed = false;
  const watch = new SizeWatch({
    family: 'IPv4',
    sizes: {
      read: (table) => {
        if (isBroken) throw new Error('EPERM');
        return { entries: entries[table] ?? 0, bytes: 100 * (entries[table] ?? 0) };
      },
      close: () => {
        isClosed = true;
      },
    },
    clock,
    logger: { ...silentLogger, error: (_, message) => void errors.push(message) },
    onSuspicion: () => void suspicions++,
  });
  return {
    clock,
    entries,
    errors,
    watch,
    suspicions: () => suspicions,
    isClosed: () => isClosed,
    break: () => {
      isBroken = true;
    },
  };
}

test('a table that changes by itself is a suspicion, once', async () => {
  const f = fixture();
  await f.clock.advance(2_000);
  assert.equal(f.suspicions(), 0);
  f.entries.filter = 3;
  await f.clock.advance(250);
  assert.equal(f.suspicions(), 1);
  await f.clock.advance(2_000);
  assert.equal(f.suspicions(), 1);
});

test('changes by our own programs are no suspicion', async () => {
  const f = fixture();
  f.watch.writerStarted();
  f.watch.writerStarted();
  f.entries.nat = 500;
  await f.clock.advance(1_000);
  f.watch.writerEnded();
  f.entries.nat = 700;
  f.watch.writerEnded();
  f.watch.explained(new Map([['nat', 695]]));
  await f.clock.advance(1_000);
  assert.equal(f.suspicions(), 0);
});

test('a change by another program between our write and its noticed end is a suspicion, once', async () => {
  const f = fixture();
  f.watch.writerStarted();
  f.entries.nat = 500;
  f.entries.nat -= 7;
  f.watch.writerEnded();
  f.watch.explained(new Map([['nat', 495]]));
  await f.clock.advance(2_000);
  assert.equal(f.suspicions(), 1);
});

test('a first write explains everything, since nobody knows what was there', async () => {
  const f = fixture();
  f.watch.writerStarted();
  f.entries.nat = 500;
  f.watch.writerEnded();
  f.watch.explained('unknown');
  await f.clock.advance(2_000);
  assert.equal(f.suspicions(), 0);
});

test('changes by other programs just before our write are noticed', async () => {
  const f = fixture();
  f.entries.nat = 1;
  f.watch.writerStarted();
  f.entries.nat = 500;
  f.watch.writerEnded();
  assert.equal(f.suspicions(), 1);
});

test('a table that cannot be read is logged once and is no suspicion', async () => {
  const f = fixture();
  f.break();
  await f.clock.advance(5_000);
  assert.equal(f.errors.length, 1);
  assert.equal(f.suspicions(), 0);
  f.watch.close();
  assert.ok(f.isClosed());
  assert.equal(f.clock.pending, 0);
});
