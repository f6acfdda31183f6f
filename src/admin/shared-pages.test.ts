import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { SharedPages } from './shared-pages.ts';

/** Pages that are complete when the test says so. A page has the form and its number. */
function setup() {
  const clock = new FakeClock();
  const ends: (() => void)[] = [];
  const pages = new SharedPages((form: string) => {
    const page = Buffer.from(`${form} ${ends.length}`);
    return new Promise((resolve) => ends.push(() => resolve(page)));
  }, clock);
  /** Resolves to the page for a request that begins to wait now. */
  const ask = async (form: string, since = clock.monotonic()): Promise<string> => {
    await clock.advance(1);
    return String(await pages.get(form, since));
  };
  const complete = async (number: number) => {
    await clock.advance(1);
    ends[number]?.();
    await clock.advance(1);
  };
  return { clock, pages, ends, ask, complete };
}

test('a request that waited before the page was begun gets that page at once', async () => {
  const { clock, pages, ends, ask, complete } = setup();
  const waiting = clock.monotonic();
  const first = ask('a');
  await complete(0);
  assert.equal(await first, 'a 0');
  assert.equal(String(pages.get('a', waiting)), 'a 0');
  assert.equal(pages.get('a', waiting), pages.get('a', waiting));
  assert.equal(ends.length, 1);
});

test('a request that comes after the page was begun gets another one', async () => {
  const { ask, complete } = setup();
  const first = ask('a');
  await complete(0);
  const [second, third] = [ask('a'), ask('a')];
  await complete(1);
  assert.deepEqual(await Promise.all([first, second, third]), ['a 0', 'a 1', 'a 1']);
});

test('one page of a form is made at a time', async () => {
  const { clock, ends, ask, complete } = setup();
  const first = ask('a');
  await clock.advance(5);
  const second = ask('a');
  await clock.advance(5);
  assert.equal(ends.length, 1);
  await complete(0);
  await complete(1);
  assert.deepEqual(await Promise.all([first, second]), ['a 0', 'a 1']);
});

test('a page that could not be made is made again for the next request', async () => {
  const clock = new FakeClock();
  let tries = 0;
  const pages = new SharedPages(async () => {
    if (++tries === 1) throw new Error('no');
    return Buffer.from('page');
  }, clock);
  await assert.rejects(async () => pages.get('a', clock.monotonic() - 1), /no/);
  assert.equal(String(await pages.get('a', clock.monotonic() - 1)), 'page');
});

test('pages of four forms are kept, then the oldest goes', async () => {
  const { clock, pages, ends, ask, complete } = setup();
  const waiting = clock.monotonic();
  for (const [number, form] of ['a', 'b', 'c', 'd', 'e'].entries()) {
    const page = ask(form);
    await complete(number);
    await page;
  }
  for (const form of ['b', 'c', 'd', 'e']) assert.ok(!(pages.get(form, waiting) instanceof Promise), form);
  assert.ok(pages.get('a', waiting) instanceof Promise);
  await clock.advance(1);
  assert.equal(ends.length, 6);
});
