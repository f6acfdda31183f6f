import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SourcePorts } from './source-ports.ts';

test('a client never uses a source port twice for one destination, and in the end has none left', () => {
  const ports = new SourcePorts();
  const used = new Set<number>();
  for (let port = ports.take('a', 'x'); port !== undefined; port = ports.take('a', 'x')) {
    assert.equal(used.has(port), false);
    used.add(port);
  }
  assert.ok(used.size > 10_000);
  assert.notEqual(ports.take('a', 'y'), undefined);
  assert.notEqual(ports.take('b', 'x'), undefined);
});

test('a client uses another port for the next destination, too', () => {
  const ports = new SourcePorts();
  assert.notEqual(ports.take('a', 'x'), ports.take('a', 'y'));
});
