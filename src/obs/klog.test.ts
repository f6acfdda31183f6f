import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { createLogger, type LoggerOptions } from './klog.ts';
import type { Logger } from './log.ts';

const at = new Date(2026, 10, 15, 4, 35, 36, 123).getTime();

function capture(overrides: Partial<LoggerOptions> = {}) {
  const out: string[] = [];
  const err: string[] = [];
  const clock = new FakeClock(at);
  const logger = createLogger({
    format: 'text',
    verbosity: 0,
    clock,
    pid: 1234,
    stdout: { write: (text) => out.push(text) },
    stderr: { write: (text) => err.push(text) },
    ...overrides,
  });
  return { logger, clock, out, err };
}

/** The record after its header. */
function body(log: (logger: Logger) => void): string {
  const { logger, err } = capture();
  log(logger);
  return err.join('').replace(/^[IE]\d{4} \S+ +\d+ \S+\] /, '');
}

test('a text record has the klog header, the quoted message and its attributes', () => {
  const { logger, err } = capture();
  logger.info('Sync done', { family: 'IPv4', services: 12 });
  assert.match(
    err[0] ?? '',
    /^I1115 04:35:36\.123000 {4}1234 klog\.test\.ts:\d+\] "Sync done" family="IPv4" services=12\n$/,
  );
});

test('a log record shows the file and line of the log call', () => {
  const { logger, err } = capture({ format: 'json' });
  const here = () => Number(/klog\.test\.ts:(\d+)/.exec(new Error().stack?.split('\n')[2] ?? '')?.[1]);
  const line = here();
  logger.info('one');
  logger.v(0).named('x').error(null, 'two');
  const lines = err.map((text) => JSON.parse(text).caller);
  assert.deepEqual(lines, [`klog.test.ts:${line + 1}`, `klog.test.ts:${line + 2}`]);
});

test('attribute values have the klog text form', () => {
  class Strange {
    toJSON() {
      throw new Error('no');
    }
  }
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const table: [unknown, string][] = [
    ['a "b"\t', String.raw`k="a \"b\"\t"`],
    ['', 'k=""'],
    [7, 'k=7'],
    [2.5, 'k=2.5'],
    [30_000_000_000n, 'k=30000000000'],
    [true, 'k=true'],
    [null, 'k=null'],
    [undefined, 'k=undefined'],
    [['10.0.0.1', 'fd00::1'], 'k=["10.0.0.1","fd00::1"]'],
    [{ a: 1, b: 'x' }, 'k={"a":1,"b":"x"}'],
    [new Map([['IPv4', 3]]), 'k={"IPv4":3}'],
    [new Set(['a']), 'k=["a"]'],
    [{ namespace: 'shop', name: 'front' }, 'k="shop/front"'],
    [{ namespace: '', name: 'node-a' }, 'k="node-a"'],
    [{ namespace: 'shop', name: 'front', port: 1 }, 'k={"namespace":"shop","name":"front","port":1}'],
    [new Error('broken'), 'k="broken"'],
    [[new Error('broken')], 'k=["broken"]'],
    [new Date(0), 'k="1970-01-01T00:00:00.000Z"'],
    ['first\nsecond', 'k=<\n\tfirst\n\tsecond\n >'],
    ['first\nsecond\n', 'k=<\n\tfirst\n\tsecond\n >'],
    [circular, 'k="cannot be shown: '],
    [new Strange(), 'k="cannot be shown: no"'],
    [Number.NaN, 'k="NaN"'],
  ];
  for (const [value, text] of table) {
    const line = body((logger) => logger.info('m', { k: value }));
    assert.ok(line.startsWith(`"m" ${text}`), line);
  }
});

test('an error record shows the message of the error before other attributes', () => {
  const error = new Error('cannot read sysctl: no such file', { cause: new Error('ENOENT') });
  assert.equal(
    body((logger) => logger.named('a').named('b').error(error, 'Failed', { k: 1 })),
    '"Failed" err="cannot read sysctl: no such file" logger="a.b" k=1\n',
  );
  assert.equal(
    body((logger) => logger.error('text', 'm')),
    '"m" err="text"\n',
  );
  assert.equal(
    body((logger) => logger.error(null, 'm')),
    '"m"\n',
  );
});

test('JSON records have their fields in order, and v on info records only', () => {
  const { logger, err } = capture({ format: 'json', verbosity: 2 });
  logger.v(2).info('hello', { ref: { namespace: 'a', name: 'b' }, big: 5n, list: new Set([1]) });
  logger.named('health').error(new Error('bad'), 'oops', { port: 1 });
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  logger.info('still', { circular, fine: 1 });
  const [info = '', error = '', broken = ''] = err;
  assert.match(
    info,
    /^\{"ts":\d+,"caller":"klog\.test\.ts:\d+","msg":"hello","v":2,"ref":\{"namespace":"a","name":"b"\},"big":5,"list":\[1\]\}\n$/,
  );
  assert.equal(JSON.parse(info).ts, at);
  assert.match(
    error,
    /^\{"ts":\d+,"caller":"[^"]+","msg":"oops","logger":"health","err":"bad","port":1\}\n$/,
  );
  assert.equal(JSON.parse(broken).fine, '1');
});

test('verbosity limits info records but not errors, and can change at run time', () => {
  const { logger, err } = capture({ verbosity: 1 });
  const chatty = logger.v(3);
  chatty.info('unseen');
  assert.equal(chatty.enabled, false);
  assert.equal(logger.v(1).enabled, true);
  chatty.error(new Error('x'), 'seen');
  logger.setVerbosity(3);
  assert.equal(chatty.enabled, true);
  chatty.info('seen too');
  assert.equal(logger.v(3), chatty, 'loggers are kept per level');
  assert.deepEqual(
    err.map((line) => /"[^"]*"/.exec(line)?.[0]),
    ['"seen"', '"seen too"'],
  );
});

test('vmodule raises verbosity for matching files, in text format only', () => {
  const patterns: [string, boolean][] = [
    ['klog.test', true],
    ['klog*', true],
    ['klog.tes?', true],
    ['[a-k]log.test', true],
    ['[^a-k]log.test', false],
    ['klog\\.test', true],
    ['klog.test.ts', false],
    ['klogxtest', false],
    ['[z-a]*', false],
    ['[', false],
    ['*', true],
  ];
  for (const [filePattern, enabled] of patterns) {
    const { logger, err } = capture({ vmodule: [{ filePattern, verbosity: 4 }] });
    logger.v(4).info('m');
    assert.equal(err.length, enabled ? 1 : 0, filePattern);
    assert.equal(logger.v(4).enabled, enabled, filePattern);
    assert.equal(logger.v(5).enabled, false, filePattern);
  }
  const json = capture({ format: 'json', vmodule: [{ filePattern: '*', verbosity: 4 }] });
  assert.equal(json.logger.v(4).enabled, false);
});

test('split stream writes info to stdout, buffered until full, due or flushed', async () => {
  const plain = capture({ splitStream: true });
  plain.logger.info('a');
  plain.logger.error(null, 'b');
  assert.deepEqual([plain.out.length, plain.err.length], [1, 1]);

  const { logger, clock, out, err } = capture({
    splitStream: true,
    infoBufferSize: 200,
    flushFrequency: 5000,
  });
  logger.info('a');
  logger.error(null, 'b');
  assert.deepEqual([out.length, err.length], [0, 1]);
  await clock.advance(5000);
  assert.equal(out.length, 1);
  logger.info('x'.repeat(200));
  assert.equal(out.length, 2, 'a full buffer is written at once');
  logger.info('c');
  logger.flush();
  assert.equal(out.length, 3);
  logger.info('d');
  logger.close();
  logger.info('e');
  assert.equal(out.length, 5);
  assert.equal(clock.pending, 0);
});

test('new options count in every logger that exists, and no record of the buffer is lost', () => {
  const out: string[] = [];
  const err: string[] = [];
  const stdout = { write: (text: string) => out.push(text) };
  const stderr = { write: (text: string) => err.push(text) };
  const clock = new FakeClock(at);
  const common = { clock, pid: 1, stdout, stderr } as const;
  const buffer = { splitStream: true, infoBufferSize: 1 << 20 };
  const logger = createLogger({ format: 'text', verbosity: 0, ...buffer, ...common });
  const named = logger.named('IPv4').v(3);
  logger.info('a');
  named.info('b');
  logger.configure({ format: 'json', verbosity: 3, ...common });
  named.info('c');
  assert.deepEqual([out.length, err.length, clock.pending], [1, 1, 0]);
  assert.equal(JSON.parse(err.join('')).msg, 'c');
});

test('without split stream no record is buffered', () => {
  const { logger, out, err } = capture({ infoBufferSize: 1 << 20 });
  logger.info('a');
  assert.deepEqual([out.length, err.length], [0, 1]);
});

test('an error of the log stream does not reach the caller', () => {
  const failing = {
    write(): never {
      throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    },
  };
  const { logger } = capture({ stderr: failing });
  logger.info('a');
  logger.error(new Error('x'), 'b');
});

test('print writes an unquoted line at its verbosity or higher', () => {
  const { logger, err } = capture({ verbosity: 1 });
  logger.print(2, 'unseen');
  logger.print(1, 'FLAG: --v="1"');
  assert.equal(err.length, 1);
  assert.match(err[0] ?? '', /^I1115 \S+ +1234 klog\.test\.ts:\d+\] FLAG: --v="1"\n$/);
  const json = capture({ verbosity: 1, format: 'json' });
  json.logger.print(1, 'FLAG: --v="1"');
  const { msg, v } = JSON.parse(json.err[0] ?? '');
  assert.deepEqual([msg, v], ['FLAG: --v="1"', 1]);
});
