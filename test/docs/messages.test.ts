import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { firstCells, section } from './markdown.ts';

const root = resolve(import.meta.dirname, '../..');
const operations = readFileSync(join(root, 'docs/operations.md'), 'utf8');
const troubleshooting = readFileSync(join(root, 'docs/troubleshooting.md'), 'utf8');
const sources = globSync('src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] })
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join('\n');

/** Messages in backticks, in the first column of a section's tables, that no source file has. `…` stands for anything. */
function unknownMessages(page: string, heading: string): string[] {
  const messages = firstCells(section(page, heading)).flatMap((cell) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message),
  );
  assert.ok(messages.length > 0, `no messages under ${heading}`);
  return messages.filter((message) => !message.split('…').every((part) => sources.includes(part.trim())));
}

test('messages that the documents quote are in the sources', () => {
  assert.deepEqual(unknownMessages(operations, 'Exit codes'), []);
  assert.deepEqual(unknownMessages(operations, 'Log lines that ask for action'), []);
  assert.deepEqual(unknownMessages(troubleshooting, 'The start fails'), []);
});

test('the documented events are those that the sources emit', () => {
  const files = globSync('src/{app/*,backends/*/mode}.ts', { cwd: root });
  const senders = files.map((file) => readFileSync(join(root, file), 'utf8')).join('\n');
  const reasons = [...senders.matchAll(/(?:\breason: |eventReason: |'Normal', |\bwarn\()'(\w+)'/g)].map(
    ([, reason]) => reason ?? '',
  );
  const documented = firstCells(section(operations, 'Events')).map((cell) => cell.replaceAll('`', ''));
  assert.deepEqual(documented.toSorted(), reasons.toSorted());
});
