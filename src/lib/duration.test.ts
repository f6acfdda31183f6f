import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatDuration, HOUR, MILLISECOND, MINUTE, parseDuration, SECOND, toMillis } from './duration.ts';

const MIN_INT64 = -(1n << 63n);
const MAX_INT64 = (1n << 63n) - 1n;

const readings: [text: string, ns: bigint][] = [
  ['0', 0n],
  ['-0', 0n],
  ['+0', 0n],
  ['0s', 0n],
  ['5s', 5n * SECOND],
  ['+5s', 5n * SECOND],
  ['-1.5h', -90n * MINUTE],
  ['1h30m0.5s', 90n * MINUTE + 500n * MILLISECOND],
  ['.5s', 500n * MILLISECOND],
  ['1.s', SECOND],
  ['100ms', 100n * MILLISECOND],
  ['7us', 7_000n],
  ['7\u00b5s', 7_000n],
  ['7\u03bcs', 7_000n],
  ['3ns', 3n],
  ['0.9ns', 0n],
  ['0.9223372036854775808h', 3320413933267n],
  ['1.00000000000000000000000000001s', SECOND],
  ['9223372036854775807ns', MAX_INT64],
  ['-9223372036854775808ns', MIN_INT64],
  ['2562047h47m16.854775807s', MAX_INT64],
];

for (const [text, ns] of readings) {
  test(`reads ${text}`, () => assert.equal(parseDuration(text), ns));
}

const faults: [text: string, message: string][] = [
  ['', 'time: invalid duration ""'],
  ['-', 'time: invalid duration "-"'],
  ['.', 'time: invalid duration "."'],
  ['.s', 'time: invalid duration ".s"'],
  ['x', 'time: invalid duration "x"'],
  [' 1s', 'time: invalid duration " 1s"'],
  ['30', 'time: missing unit in duration "30"'],
  ['1h5', 'time: missing unit in duration "1h5"'],
  ['1d', 'time: unknown unit "d" in duration "1d"'],
  ['1 fortnight', 'time: unknown unit " fortnight" in duration "1 fortnight"'],
  ['1h-2s', 'time: unknown unit "h-" in duration "1h-2s"'],
  ['1é', 'time: unknown unit "\\xc3\\xa9" in duration "1\\xc3\\xa9"'],
  ['"\\\x01', 'time: invalid duration "\\"\\\\\\x01"'],
  ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
  ['-9223372036854775809ns', 'time: invalid duration "-9223372036854775809ns"'],
  ['3000000h', 'time: invalid duration "3000000h"'],
  ['99999999999999999999', 'time: invalid duration "99999999999999999999"'],
];

for (const [text, message] of faults) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => parseDuration(text), { message });
  });
}

const printings: [ns: bigint, text: string][] = [
  [0n, '0s'],
  [1n, '1ns'],
  [1_000n, '1\u00b5s'],
  [1_100n, '1.1\u00b5s'],
  [100n * MILLISECOND, '100ms'],
  [2_200_000n, '2.2ms'],
  [1_500n * MILLISECOND, '1.5s'],
  [15n * MINUTE, '15m0s'],
  [24n * HOUR, '24h0m0s'],
  [-(HOUR + SECOND), '-1h0m1s'],
  [MAX_INT64, '2562047h47m16.854775807s'],
  [MIN_INT64, '-2562047h47m16.854775808s'],
];

for (const [ns, text] of printings) {
  test(`prints ${text}`, () => assert.equal(formatDuration(ns), text));
}

test('formatted durations parse to the same value, over all of int64', () => {
  const small = fc.bigInt({ min: -(10n ** 10n), max: 10n ** 10n });
  const any = fc.bigInt({ min: MIN_INT64, max: MAX_INT64 });
  fc.assert(fc.property(fc.oneof(small, any), (ns) => parseDuration(formatDuration(ns)) === ns));
});

test('parseDuration returns a 64-bit number or throws an error with the text', () => {
  const piece = fc.constantFrom('0', '9', '18', '.', 'h', 'm', 's', 'ns', 'µs', '-', '+', ' ', 'é', '"');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (text) => {
        try {
          const ns = parseDuration(text);
          assert.equal(BigInt.asIntN(64, ns), ns);
        } catch (error) {
          assert.match((error as Error).message, /^time: (invalid|unknown unit|missing unit) /);
        }
      },
    ),
  );
});

test('toMillis keeps the fraction', () => {
  assert.equal(toMillis(1_500_000n), 1.5);
  assert.equal(toMillis(-SECOND), -1000);
});
