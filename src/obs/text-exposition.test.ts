import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatGoFloat } from './text-exposition.ts';

test('floats are formatted like strconv.FormatFloat(x, g, -1)', () => {
  const table: [number, string][] = [
    [0, '0'],
    [-0, '-0'],
    [1, '1'],
    [0.25, '0.25'],
    [604800, '604800'],
    [999999.5, '999999.5'],
    [1e6, '1e+06'],
    [2592000, '2.592e+06'],
    [1048576, '1.048576e+06'],
    [124416000, '1.24416e+08'],
    [2 ** 64, '1.8446744073709552e+19'],
    [1e100, '1e+100'],
    [0.0001, '0.0001'],
    [0.00016, '0.00016'],
    [0.00001, '1e-05'],
    [6.399999999999999e-8, '6.399999999999999e-08'],
    [-1234567.5, '-1.2345675e+06'],
    [Number.POSITIVE_INFINITY, '+Inf'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
    [Number.NaN, 'NaN'],
  ];
  for (const [value, text] of table) assert.equal(formatGoFloat(value), text);
});

test('a formatted float parses to the same number', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      assert.equal(Number(formatGoFloat(value)), value);
    }),
  );
});
