import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnreadBytes } from './unread-bytes.ts';

/** Bytes with memory of their own, as a socket brings them. */
function received(text: string): Buffer {
  return Buffer.from(Uint8Array.from(Buffer.from(text, 'latin1')).buffer);
}

test('bytes are read in their order, and a head ends with the first empty line', () => {
  const unread = new UnreadBytes();
  unread.add(received('GET / HTTP/1.1\r\nA: b\r\n'));
  assert.equal(unread.headText(), 'GET / HTTP/1.1\r\nA: b\r\n');
  unread.drop('GET / '.length);
  unread.add(received('\r\nbody\n\nrest'));
  assert.equal(unread.headText(), 'HTTP/1.1\r\nA: b\r\n\r\n');
  unread.drop(unread.headText().length);
  assert.equal(unread.headText(), 'body\n\n');
  unread.drop(6);
  assert.deepEqual([unread.text(), unread.length], ['rest', 4]);
  unread.drop(4);
  assert.deepEqual([unread.text(), unread.headText(), unread.length], ['', '', 0]);
});

test('memory of bytes that are dropped is free at once, but not what others use', () => {
  const [first, second, third] = ['first', 'second', 'third'].map(received);
  assert.ok(first && second && third);
  const unread = new UnreadBytes();
  unread.add(first);
  unread.add(second);
  unread.drop(11);
  unread.add(third);
  unread.drop(4);
  assert.deepEqual(
    [first, second, third].map(({ buffer }) => buffer.byteLength),
    [0, 0, 5],
  );
  const part = Buffer.alloc(10).subarray(0, 5);
  const another = new UnreadBytes();
  another.add(part);
  another.drop(5);
  assert.equal(part.length, 5);
});
