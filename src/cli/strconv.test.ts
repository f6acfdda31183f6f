import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatFloat } from '../lib/go-float.ts';
import { parseBool, parseFloat32, parseInt32, parseUint31 } from './strconv.ts';

test('parseBool accepts the twelve words of Go', () => {
  for (const word of ['1', 't', 'T', 'true', 'TRUE', 'True']) assert.equal(parseBool(word), true);
  for (const word of ['0', 'f', 'F', 'false', 'FALSE', 'False']) assert.equal(parseBool(word), false);
  for (const word of ['', 'yes', 'tRUE', ' true', '2']) {
    assert.throws(() => parseBool(word), { message: `strconv.ParseBool: parsing "${word}": invalid syntax` });
  }
});

const integers: [text: string, value: number][] = [
  ['0', 0],
  ['14', 14],
  ['+5', 5],
  ['-999', -999],
  ['1_000', 1000],
  ['0x1F', 31],
  ['0X_1f', 31],
  ['0o17', 15],
  ['017', 15],
  ['0_7', 7],
  ['0b101', 5],
  ['-0x80000000', -2147483648],
  ['2147483647', 2147483647],
];

for (const [text, value] of integers) {
  test(`int32 ${text}`, () => assert.equal(parseInt32(text), value));
}

for (const text of ['', '+', 'abc', '08', '0x', '0_', '_1', '1__0', '1_', ' 1', '1.5', '--1', '1\n']) {
  test(`int32 refuses ${JSON.stringify(text)}`, () => {
    const message = `strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`;
    assert.throws(() => parseInt32(text), { message });
  });
}

for (const text of ['2147483648', '-2147483649', '0x80000000', '99999999999999999999999']) {
  test(`int32 ${text} is out of range`, () => {
    assert.throws(() => parseInt32(text), {
      message: `strconv.ParseInt: parsing "${text}": value out of range`,
    });
  });
}

test('parseUint31 accepts decimal digits only', () => {
  assert.equal(parseUint31('007'), 7);
  assert.equal(parseUint31('2147483647'), 2147483647);
  for (const text of ['', '-1', '+1', '0x1', '1_0', 'ersion']) {
    assert.throws(() => parseUint31(text), {
      message: `strconv.ParseUint: parsing "${text}": invalid syntax`,
    });
  }
  assert.throws(() => parseUint31('2147483648'), { message: /value out of range$/ });
});

const floats: [text: string, printed: string][] = [
  ['5', '5'],
  ['-2.50', '-2.5'],
  ['.5', '0.5'],
  ['1.', '1'],
  ['0.1', '0.1'],
  ['1e3', '1000'],
  ['1_0.5', '10.5'],
  ['999999', '999999'],
  ['1e6', '1e+06'],
  ['1234567', '1.234567e+06'],
  ['123456789', '1.2345679e+08'],
  ['16777217', '1.6777216e+07'],
  ['0.0001', '0.0001'],
  ['0.00001', '1e-05'],
  ['1e-50', '0'],
];

for (const [text, printed] of floats) {
  test(`float32 ${text} prints as ${printed}`, () => assert.equal(formatFloat(parseFloat32(text)), printed));
}

test('parseFloat32 refuses what is not a finite 32-bit number', () => {
  for (const text of ['', '.', 'e5', '1e', 'abc', '1_.5', 'inf', 'NaN', '0x10', ' 1']) {
    assert.throws(() => parseFloat32(text), {
      message: `strconv.ParseFloat: parsing "${text}": invalid syntax`,
    });
  }
  assert.throws(() => parseFloat32('1e39'), {
    message: 'strconv.ParseFloat: parsing "1e39": value out of range',
  });
});

test('a float32 that is printed and parsed is the same', () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const read = parseFloat32(String(value));
      assert.equal(Math.fround(read), value === 0 ? 0 : value);
      assert.equal(parseFloat32(formatFloat(read)), read);
    }),
  );
});
