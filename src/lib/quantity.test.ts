import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseQuantity } from './quantity.ts';

const MAX_INT64 = (1n << 63n) - 1n;

const quantities: [text: string, canonical: string, value: bigint][] = [
  ['0', '0', 0n],
  ['-0', '0', 0n],
  ['0Ki', '0', 0n],
  ['512', '512', 512n],
  ['.', '0', 0n],
  ['-.Ki', '0', 0n],
  ['k', '0', 0n],
  ['e3', '0', 0n],
  ['00', '0', 0n],
  ['+5', '+5', 5n],
  ['007', '007', 7n],
  ['1000', '1k', 1000n],
  ['1500', '1500', 1500n],
  ['100000', '100k', 100_000n],
  ['1k', '1k', 1000n],
  ['3M', '3M', 3_000_000n],
  ['4G', '4G', 4_000_000_000n],
  ['2Ki', '2Ki', 2048n],
  ['+2.Ki', '+2.Ki', 2048n],
  ['1024Ki', '1Mi', 1n << 20n],
  ['1.5Ki', '1536', 1536n],
  ['1.5Gi', '1536Mi', 1536n << 20n],
  ['0.5Ki', '512', 512n],
  ['0.1Ki', '102400m', 103n],
  ['1.0001Ki', '1025', 1025n],
  ['-2Ki', '-2Ki', -2048n],
  ['.5', '500m', 1n],
  ['5.', '5.', 5n],
  ['5.0', '5', 5n],
  ['0.001', '1m', 1n],
  ['-1.5', '-1500m', -2n],
  ['1500m', '1500m', 2n],
  ['1000m', '1', 1n],
  ['1u', '1u', 1n],
  ['1n', '1n', 1n],
  ['0.1n', '1n', 1n],
  ['-0.1n', '-1n', -1n],
  ['1E', '1E', 10n ** 18n],
  ['1e3', '1e3', 1000n],
  ['1E3', '1E3', 1000n],
  ['12e-1', '1200e-3', 2n],
  ['1e+6', '1e+6', 1_000_000n],
  ['1000e3', '1e6', 1_000_000n],
  ['5e0', '5e0', 5n],
  ['5e1', '50', 50n],
  ['1e5', '100e3', 100_000n],
  ['8Ei', '9223372036854775807', MAX_INT64],
  ['1e19', '9223372036854775807', MAX_INT64],
  ['1e30', '1e30', MAX_INT64],
  ['9223372036854775808', '9223372036854775808', MAX_INT64],
  ['1e-999999999999', '1e-9', 1n],
];

for (const [text, canonical, value] of quantities) {
  test(`reads ${text} as ${canonical}`, () =>
    assert.deepEqual(parseQuantity(text), { text: canonical, value }));
}

const format = /^quantities must match the regular expression '\^\(\[\+-\]\?\[0-9\.\]\+\)/;
const suffix = /^unable to parse quantity's suffix$/;

const faults: [text: string, message: RegExp][] = [
  ['', format],
  ['abc', format],
  [' 1', format],
  ['1 ', format],
  ['1.1.1', format],
  ['1+1.0M', format],
  ['1-', suffix],
  ['+-1', suffix],
  ['1K', suffix],
  ['1i', suffix],
  ['0.1mi', suffix],
  ['1Kii', suffix],
  ['1e', suffix],
  ['1e-', suffix],
  ['1e99999999999999999999', suffix],
];

for (const [text, message] of faults) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => parseQuantity(text), { message });
  });
}

test('the format error is the text Kubernetes gives', () => {
  assert.throws(() => parseQuantity('x'), {
    message: "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  });
});

const numbers = fc.tuple(
  fc.constantFrom('', '-', '+'),
  fc.bigInt({ min: 0n, max: 10n ** 15n }),
  fc.option(fc.nat()),
  fc.constantFrom('', 'n', 'u', 'm', 'k', 'M', 'Ki', 'Mi', 'Ei', 'e3', 'e-20', 'E40'),
);

test('canonical text has the same value and is canonical itself', () => {
  fc.assert(
    fc.property(numbers, ([sign, whole, fraction, unit]) => {
      const first = parseQuantity(`${sign}${whole}${fraction === null ? '' : `.${fraction}`}${unit}`);
      assert.deepEqual(parseQuantity(first.text), first);
    }),
  );
});

test('parseQuantity returns a quantity within 64 bits or throws, for any text', () => {
  const piece = fc.constantFrom('0', '9', '.', 'e', 'E', 'i', 'K', 'M', 'n', '+', '-', '999999999');
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (text) => {
        try {
          const { value } = parseQuantity(text);
          assert.ok(value <= MAX_INT64 && value >= -MAX_INT64);
        } catch (error) {
          assert.match((error as Error).message, /quantit/);
        }
      },
    ),
  );
});
