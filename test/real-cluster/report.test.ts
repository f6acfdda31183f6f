import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readReport, renderTable, succeeded } from './report.ts';

const spec = (text: string, state: string, message?: string) => ({
  LeafNodeType: 'It',
  LeafNodeText: text,
  ContainerHierarchyTexts: ['[sig-network] Services'],
  State: state,
  RunTime: 61_000_000_000,
  ...(message !== undefined && { Failure: { Message: message } }),
});

const json = JSON.stringify([
  {
    SpecReports: [
      spec('should serve', 'passed'),
      spec('should not fail', 'failed', 'timed out\nwhile waiting'),
      spec('needs six nodes', 'skipped', 'Requires at least 6 nodes'),
      spec('was not chosen', 'skipped'),
      { ...spec('', 'passed'), LeafNodeType: 'SynchronizedBeforeSuite' },
    ],
  },
]);

test('a report holds the tests that ran and those that skipped themselves', () => {
  const results = readReport(json);
  assert.deepEqual(
    results.map(({ name, state, reason }) => [name, state, reason]),
    [
      ['[sig-network] Services should serve', 'passed', ''],
      ['[sig-network] Services should not fail', 'failed', 'timed out'],
      ['[sig-network] Services needs six nodes', 'skipped', 'Requires at least 6 nodes'],
    ],
  );
  assert.equal(succeeded(results), false);
  assert.equal(succeeded(results.filter(({ state }) => state !== 'failed')), true);
});

test('a run without any test is no success', () => assert.equal(succeeded([]), false));

test('the table has a row per test and a column per run, then totals and reasons', () => {
  const results = readReport(json);
  const others = results.filter(({ state }) => state === 'passed');
  assert.equal(
    renderTable([
      { title: 'ours', results },
      { title: 'upstream', results: others },
    ]),
    `| test | ours | upstream |
| --- | --- | --- |
| [sig-network] Services needs six nodes | skip |  |
| [sig-network] Services should not fail | FAILED 61 s |  |
| [sig-network] Services should serve | pass 61 s | pass 61 s |

ours: 1 passed, 1 failed, 1 skipped; 3 minutes of tests
upstream: 1 passed; 1 minutes of tests
ours: failed: [sig-network] Services should not fail: timed out
ours: skipped: [sig-network] Services needs six nodes: Requires at least 6 nodes`,
  );
});
