import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type FileResult, type ReportLine, readReport, render, succeeded, type TestLine } from './report.ts';
import report, { type RunnerEvent } from './reporter.ts';

const passed: TestLine = { kind: 'test', titles: ['suite', 'works'], outcome: 'passed', ms: 1200 };
const failed: TestLine = {
  ...passed,
  titles: ['suite', 'breaks'],
  outcome: 'failed',
  detail: 'Error: no\nat x',
};
const skipped: TestLine = { ...passed, outcome: 'skipped', detail: 'not here' };
const end: ReportLine = { kind: 'end', success: true, tests: 1 };

const textOf = (...lines: readonly ReportLine[]): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('');

const isGood = (text: string | undefined): boolean => succeeded([readReport('a.test.ts', text)]);

describe('a report', () => {
  test('a report of passed and skipped tests is good', () => {
    assert.ok(isGood(textOf(passed, skipped, end)));
  });

  test('a report with a failed test is not good', () => {
    assert.ok(!isGood(textOf(passed, failed, { ...end, success: false })));
    assert.ok(!isGood(textOf(passed, failed, end)), 'even if its last line counts no failure');
  });

  test('a report of a file that failed outside its tests is not good', () => {
    assert.deepEqual(readReport('a.test.ts', textOf(passed, { ...end, success: false })).problems, [
      'failed outside its tests',
    ]);
  });

  test('a report of no test, or of skipped ones only, is not good', () => {
    assert.deepEqual(readReport('a.test.ts', textOf({ ...end, tests: 0 })).problems, ['ran no test']);
    assert.deepEqual(readReport('a.test.ts', textOf(skipped, end)).problems, ['ran no test']);
  });

  test('a report that lacks a test is not good', () => {
    assert.deepEqual(readReport('a.test.ts', textOf(passed, { ...end, tests: 2 })).problems, [
      'reported 1 of 2 tests',
    ]);
  });

  test('a missing or empty report is not good', () => {
    for (const text of [undefined, '', '\n']) {
      assert.deepEqual(readReport('a.test.ts', text).problems, ['left no report']);
      assert.ok(!isGood(text));
    }
  });

  test('a report that was cut short anywhere is not good', () => {
    const whole = textOf(passed, passed, skipped, end);
    for (let length = 0; length < whole.length - 1; length++) {
      assert.ok(!isGood(whole.slice(0, length)), `cut after ${length} characters`);
    }
  });

  test('a report of arbitrary text is read without an exception, and is not good', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.array(fc.json()).map((all) => all.join('\n')),
        ),
        (text) => {
          assert.ok(!isGood(text));
        },
      ),
    );
  });

  test('reports of no file are not good', () => {
    assert.ok(!succeeded([]));
  });
});

test('rendered results show failures with reasons, skips and the sum', () => {
  const results: FileResult[] = [
    readReport('a.test.ts', textOf(passed, failed, skipped, { ...end, success: false })),
    readReport('b.test.ts', textOf(passed)),
  ];
  assert.equal(
    render(results),
    [
      '✖ a.test.ts: suite › breaks',
      '    Error: no',
      '    at x',
      '✖ b.test.ts did not run to its end',
      '﹣ a.test.ts: 1 skipped: not here',
      'a.test.ts: 1 passed, 1 failed, 1 skipped',
      'b.test.ts: 1 passed, 1 failed, 0 skipped',
      '2 passed, 2 failed, 1 skipped',
    ].join('\n'),
  );
});

describe('the reporter', () => {
  const start = (nesting: number, name: string): RunnerEvent => ({
    type: 'test:start',
    data: { nesting, name },
  });
  const over = (type: string, nesting: number, name: string, rest: object = {}): RunnerEvent => ({
    type,
    data: { nesting, name, details: { duration_ms: 1.4, type: 'test' }, ...rest },
  });
  const summary = (rest: object): RunnerEvent => ({
    type: 'test:summary',
    data: { success: true, counts: { tests: 2 }, ...rest },
  });

  async function linesOf(...events: readonly RunnerEvent[]): Promise<unknown[]> {
    const lines: unknown[] = [];
    for await (const line of report(toAsync(events))) lines.push(JSON.parse(line));
    return lines;
  }

  async function* toAsync(events: readonly RunnerEvent[]): AsyncGenerator<RunnerEvent> {
    yield* events;
  }

  test('the reporter names tests with their suites', async () => {
    const suite = { details: { duration_ms: 3, type: 'suite' } };
    const lines = await linesOf(
      start(0, 'outer'),
      start(1, 'one'),
      over('test:pass', 1, 'one'),
      start(1, 'two'),
      over('test:pass', 1, 'two', { skip: 'not here' }),
      over('test:pass', 0, 'outer', suite),
      summary({}),
    );
    assert.deepEqual(lines, [
      { kind: 'test', titles: ['outer', 'one'], ms: 1, outcome: 'passed' },
      { kind: 'test', titles: ['outer', 'two'], ms: 1, outcome: 'skipped', detail: 'not here' },
      { kind: 'end', success: true, tests: 2 },
    ]);
  });

  test('the reporter writes the error of a test, and of a suite whose hook failed', async () => {
    const wrapped = (failureType: string, type: string) => ({
      details: {
        duration_ms: 1,
        type,
        error: Object.assign(new Error('wrapper', { cause: 'the cause' }), { failureType }),
      },
    });
    const lines = await linesOf(
      over('test:fail', 1, 'one', wrapped('testCodeFailure', 'test')),
      over('test:fail', 0, 'outer', wrapped('subtestsFailed', 'suite')),
      over('test:fail', 0, 'hooked', wrapped('hookFailed', 'suite')),
    );
    assert.deepEqual(lines, [
      { kind: 'test', titles: ['one'], ms: 1, outcome: 'failed', detail: 'the cause' },
      { kind: 'test', titles: ['hooked'], ms: 1, outcome: 'failed', detail: 'the cause' },
    ]);
  });

  test('the reporter ends only with the summary of the whole run', async () => {
    assert.deepEqual(await linesOf(summary({ file: 'a.test.ts' })), []);
  });
});
