import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MetricFamily } from './family.ts';
import { ProtobufWriter } from './protobuf.ts';
import { encodeDelimited } from './protobuf-exposition.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

test('ProtobufWriter encodes fields as the protocol buffer format requires', () => {
  const writer = new ProtobufWriter()
    .uint(1, 150)
    .uint(2, 2 ** 40)
    .uint(3, 0xffff_ffff_ffff_ffffn)
    .string(4, 'testing')
    .double(5, 1)
    .packed(6, [3, 270, 86942])
    .message(7, (inner) => inner.uint(1, 1));
  assert.equal(
    hex(writer.finish()),
    ['089601', '10808080808020', '18ffffffffffffffffff01', '220774657374696e67', '29000000000000f03f']
      .concat(['3206038e029ea705', '3a020801'])
      .join(''),
  );
});

test('ProtobufWriter grows its buffer', () => {
  const text = 'x'.repeat(100_000);
  const bytes = new ProtobufWriter().string(1, text).finish();
  assert.equal(bytes.length, 100_000 + 1 + 3);
});

test('each family is a length-delimited MetricFamily message', () => {
  const families: MetricFamily[] = [
    { name: 'c', help: 'h', type: 'counter', series: [{ labels: [['l', 'v']], value: 2 }] },
    {
      name: 'd',
      help: '',
      type: 'histogram',
      series: [{ labels: [], buckets: [{ upperBound: 1, cumulativeCount: 1 }], sum: 3, count: 2 }],
    },
  ];
  const two = '0000000000000040';
  const size = (text: string) => (text.length / 2).toString(16).padStart(2, '0');
  const sized = (tag: string, text: string) => `${tag}${size(text)}${text}`;
  const label = sized('0a', '0a016c120176');
  const counter = `0a0163 120168 1800 ${sized('22', label + sized('1a', `09${two}`))}`.replaceAll(' ', '');
  const histogram = `0802 110000000000000840 1a0b 0801 11000000000000f03f`.replaceAll(' ', '');
  const second = `0a0164 1200 1804 ${sized('22', sized('3a', histogram))}`.replaceAll(' ', '');
  assert.equal(hex(encodeDelimited(families)), sized('', counter) + sized('', second));
});
