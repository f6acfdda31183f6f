import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { Journal } from '../inspect/journal.ts';
import type { Problem } from '../model/problem.ts';
import type { WatchStatus } from '../model/source-status.ts';
import { JournalWatch } from './journal-watch.ts';

function setup() {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  const journal = new Journal(clock);
  const problems: Problem[] = [];
  const watches: WatchStatus[] = [];
  const watch = new JournalWatch({
    journal,
    problems: () => problems,
    sources: () => ({ kind: 'APIServer', location: 'https://192.0.2.1', watches, errors: [] }),
    clock,
  });
  watch.start();
  const noted = () =>
    journal.entries().map(({ event, family = '', texts }) => `${event} ${family} ${texts.join('; ')}`);
  return { clock, problems, watches, noted };
}

test('the journal has the beginning and the end of a problem, not its changing text', async () => {
  const { clock, problems, noted } = setup();
  const problem = { kind: 'RulesWrong', family: 'IPv4', isOutage: true, text: 'repair due in 2 s' } as const;
  problems.push(problem);
  await clock.advance(1_000);
  problems[0] = { ...problem, text: 'repair due in 1 s' };
  await clock.advance(1_000);
  assert.deepEqual(noted(), ['Problem IPv4 RulesWrong: repair due in 2 s']);
  problems.pop();
  await clock.advance(1_000);
  assert.equal(noted()[1], 'ProblemSolved IPv4 RulesWrong: repair due in 2 s');
});

test('the journal has watches that fail and come back, but not those that the server ends regularly', async () => {
  const { clock, watches, noted } = setup();
  const connecting = { state: 'connecting', since: 0, reason: undefined, lastEvent: undefined } as const;
  watches.push({ ...connecting, resource: 'services' }, { ...connecting, resource: 'endpointSlices' });
  await clock.advance(1_000);
  assert.deepEqual(noted(), []);
  for (const at of [0, 1]) Object.assign(watches[at] ?? {}, { reason: 'connection refused' });
  await clock.advance(5_000);
  for (const at of [0, 1]) Object.assign(watches[at] ?? {}, { state: 'connected', reason: undefined });
  await clock.advance(1_000);
  assert.deepEqual(noted(), [
    'WatchLost  services: connection refused; endpointslices: connection refused',
    'WatchRegained  services; endpointslices',
  ]);
});
