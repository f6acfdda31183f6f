import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { cut, cuts, singleBytes } from '../../test/kube/chunks.ts';
import { FrameSplitter, ListSplitter } from './json-stream.ts';
import { StreamError } from './stream-error.ts';

const bytes = (text: string) => Buffer.from(text, 'utf8');

function framesOf(chunks: readonly Uint8Array[], limit?: number): unknown[] {
  const splitter = new FrameSplitter(limit);
  const frames = chunks.flatMap((chunk) => [...splitter.push(chunk)]);
  splitter.end();
  return frames;
}

function listOf(chunks: readonly Uint8Array[], limit?: number) {
  const splitter = new ListSplitter(limit);
  const items = chunks.flatMap((chunk) => [...splitter.push(chunk)]);
  return { items, envelope: splitter.end() };
}

const object = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 });
/** The value after serialisation as JSON and back, which changes -0 and __proto__. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value));

describe('watch frames', () => {
  test('objects are read unchanged wherever chunks are cut', () => {
    fc.assert(
      fc.property(fc.array(object), fc.constantFrom('', '\n', ' \r\n\t'), cuts, (objects, space, places) => {
        const data = bytes(objects.map((o) => JSON.stringify(o) + space).join(''));
        assert.deepEqual(framesOf(cut(data, places)), plain(objects));
      }),
    );
  });

  const bad: [name: string, text: string | Buffer, message: RegExp][] = [
    ['text', 'hello\n', /byte 0x68 where a watch event should be/],
    ['an array', '[1]', /byte 0x5b/],
    ['a half object', '{"type":"ADDED"', /ended inside a watch event/],
    ['a half string', '{"type":"ADD', /ended inside/],
    ['crossed brackets', '{"a":]', /not valid JSON/],
    ['invalid UTF-8', Buffer.concat([bytes('{"a":"'), Buffer.from([0xff]), bytes('"}')]), /UTF-8/],
    ['binary', Buffer.from([0x1f, 0x8b, 0]), /byte 0x1f/],
    ['endless nesting', '{"a":'.repeat(10_000), /nested deeper/],
    ['a huge object', `{"a":"${'x'.repeat(5000)}"}`, /larger than 4096 bytes/],
    ['a huge object without an end', `{"a":"${'x'.repeat(5000)}`, /larger than 4096 bytes/],
  ];
  for (const [name, text, message] of bad) {
    test(`${name} is refused`, () => {
      const data = typeof text === 'string' ? bytes(text) : text;
      assert.throws(() => framesOf([data], 4096), { name: 'StreamError', message });
      assert.throws(() => framesOf(singleBytes(data), 4096), { name: 'StreamError', message });
    });
  }
});

describe('lists', () => {
  test('items and envelope are read unchanged wherever chunks are cut', () => {
    fc.assert(
      fc.property(
        fc.array(object),
        object,
        object,
        fc.boolean(),
        cuts,
        (items, before, after, pretty, places) => {
          const rest = (part: typeof object extends fc.Arbitrary<infer T> ? T : never) => {
            const { items: _, ...others } = part;
            return others;
          };
          const list = plain({ ...rest(before), items, ...rest(after) });
          const data = bytes(JSON.stringify(list, null, pretty ? 2 : 0));
          const read = listOf(cut(data, places));
          assert.deepEqual(read.items, list.items);
          assert.deepEqual({ ...read.envelope, items }, { ...list, items });
        },
      ),
    );
  });

  test('a list without members may be written [] or null', () => {
    for (const items of ['[]', '[ ]', 'null']) {
      const read = listOf([
        bytes(`{"kind":"ServiceList","metadata":{"resourceVersion":"5"},"items":${items}}\n`),
      ]);
      assert.deepEqual(read.items, []);
      assert.deepEqual(read.envelope.metadata, { resourceVersion: '5' });
    }
  });

  test('a nested array named items is not the list', () => {
    const read = listOf([
      bytes('{"metadata":{"items":[{"no":1}]},"other":[{"items":[1]}],"items":[{"yes":1}]}'),
    ]);
    assert.deepEqual(read.items, [{ yes: 1 }]);
  });

  const bad: [name: string, text: string, message: RegExp][] = [
    ['nothing', '', /ended inside a list/],
    ['a page of text', '<html>', /byte 0x3c/],
    ['an object without items', '{"kind":"Status","code":500}', /not a list/],
    ['items that are no objects', '{"items":[1]}', /byte 0x31/],
    ['a missing comma', '{"items":[{}{}]}', /byte 0x7b/],
    ['a comma too many', '{"items":[{},]}', /byte 0x5d/],
    ['a list cut short', '{"items":[{},{"a":1}', /ended inside a list/],
    ['something after the list', '{"items":[]}{', /byte 0x7b where the end/],
    ['two arrays of items', '{"items":[],"items":[]}', /two arrays/],
    ['a broken item', '{"items":[{"a"}]}', /an item of a list is not valid JSON/],
    ['a broken envelope', '{"metadata":,"items":[]}', /the envelope of a list is not valid JSON/],
    ['a huge item', `{"items":[{"a":"${'x'.repeat(5000)}"}]}`, /larger than 4096/],
    ['a huge envelope', `{"a":"${'x'.repeat(2 ** 20)}`, /larger than 1048576/],
  ];
  for (const [name, text, message] of bad) {
    test(`${name} is refused`, () => {
      assert.throws(() => listOf([bytes(text)], 4096), { name: 'StreamError', message });
    });
  }

  test('reading many arrays in the envelope takes linear time', () => {
    const data = bytes(`{${'"a":[],'.repeat(100_000)}"items":[{}]}`);
    assert.equal(listOf([data]).items.length, 1);
  });
});

test('any bytes either parse or fail with StreamError', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ':',
    ',',
    '"items"',
    '"items":[',
    '1',
    'null',
    ' ',
    '{}',
    '\n',
  );
  const soup = fc.oneof(
    fc.array(token).map((tokens) => bytes(tokens.join(''))),
    fc.uint8Array(),
  );
  fc.assert(
    fc.property(soup, cuts, (data, places) => {
      const chunks = cut(Buffer.from(data), places);
      for (const read of [framesOf, listOf]) {
        try {
          read(chunks);
        } catch (error) {
          assert.ok(error instanceof StreamError, String(error));
        }
      }
    }),
    { numRuns: 1000 },
  );
});
