import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseTriggerTime } from './trigger-time.ts';

test('valid RFC 3339 times are parsed and invalid ones refused', () => {
  const rows: readonly (readonly [text: string, time: number | undefined])[] = [
    ['1970-01-01T00:00:00Z', 0],
    ['2024-02-29T12:30:45Z', Date.UTC(2024, 1, 29, 12, 30, 45)],
    ['2024-02-29T12:30:45.5Z', Date.UTC(2024, 1, 29, 12, 30, 45, 500)],
    ['2024-02-29T12:30:45.123456789Z', Date.UTC(2024, 1, 29, 12, 30, 45) + 123.456789],
    ['2024-02-29T12:30:45+02:30', Date.UTC(2024, 1, 29, 10, 0, 45)],
    ['2024-02-29T12:30:45-02:30', Date.UTC(2024, 1, 29, 15, 0, 45)],
    ['2023-02-29T12:30:45Z', undefined],
    ['2024-13-01T00:00:00Z', undefined],
    ['2024-00-01T00:00:00Z', undefined],
    ['2024-01-00T00:00:00Z', undefined],
    ['2024-01-01T24:00:00Z', undefined],
    ['2024-01-01T00:60:00Z', undefined],
    ['2024-01-01T00:00:60Z', undefined],
    ['2024-01-01T00:00:00+24:00', undefined],
    ['2024-01-01T00:00:00', undefined],
    ['2024-01-01 00:00:00Z', undefined],
    ['2024-01-01t00:00:00z', undefined],
    ['2024-01-01T00:00:00.Z', undefined],
    ['2024-01-01', undefined],
    ['1704067200', undefined],
    ['', undefined],
  ];
  for (const [text, time] of rows) {
    const parsed = parseTriggerTime(text);
    if (time === undefined || parsed === undefined) assert.equal(parsed, time, text);
    else assert.ok(Math.abs(parsed - time) < 0.001, text);
  }
});

test('every time that toISOString writes with a four-digit year is parsed back', () => {
  const date = fc.date({
    min: new Date('0100-01-01T00:00:00Z'),
    max: new Date('9999-12-31T23:59:59Z'),
    noInvalidDate: true,
  });
  fc.assert(fc.property(date, (d) => assert.equal(parseTriggerTime(d.toISOString()), d.getTime())));
});
