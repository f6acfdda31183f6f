import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordedAnswers } from '../../../test/cluster/protobuf/answers.ts';
import { cut, singleBytes } from '../../../test/kube/chunks.ts';
import { mulberry32 } from '../../../test/mulberry32.ts';
import { seed } from '../../../test/seed.ts';
import type { ResourceName } from '../../model/objects.ts';
import type { ReceivedObject } from '../encoding.ts';
import { ObjectError } from '../fields.ts';
import { StreamError } from '../stream-error.ts';
import { protobufEncoding } from './encoding.ts';
import { FrameSplitter } from './frame-splitter.ts';
import { ListSplitter } from './list-parser.ts';

const bytes = (...parts: (string | number | Uint8Array)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'number' ? Buffer.of(part) : Buffer.from(part))));
/** A field that has a length. */
const field = (number: number, ...parts: (string | number | Uint8Array)[]) => {
  const content = bytes(...parts);
  return bytes(number * 8 + 2, varint(content.length), content);
};

function varint(value: number): Buffer {
  return value < 0x80 ? bytes(value) : bytes((value % 0x80) + 0x80, varint(Math.floor(value / 0x80)));
}

const object = (kind: string, ...parts: (string | Uint8Array)[]) =>
  bytes('k8s\0', field(1, field(2, kind)), field(2, ...parts), field(3), field(4));
const version = field(1, field(2, '7'));
const list = (...parts: (string | Uint8Array)[]) => object('ServiceList', version, ...parts);
const named = field(1, field(1, 'a'));
const frame = (...parts: Uint8Array[]) => {
  const content = bytes(...parts);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return bytes(length, content);
};
const added = (...parts: Uint8Array[]) =>
  frame(field(1, 'ADDED'), field(2, field(1, object('Service', ...parts))));

function readList(chunks: readonly Uint8Array[]): unknown[] {
  const reader = protobufEncoding.list();
  const items = chunks.flatMap((chunk) =>
    Array.from(reader.push(chunk), (item) => item.decode('services', (text) => text)),
  );
  reader.end();
  return items;
}

function readWatch(chunks: readonly Uint8Array[], resource: ResourceName = 'services'): unknown[] {
  const reader = protobufEncoding.watch();
  const objects = chunks.flatMap((chunk) =>
    Array.from(reader.push(chunk), (event) =>
      'object' in event ? event.object.decode(resource, (text) => text) : event,
    ),
  );
  reader.end();
  return objects;
}

type Case = readonly [name: string, data: Buffer, message: RegExp];

function refusedBy(read: (chunks: readonly Uint8Array[]) => unknown, cases: readonly Case[]): void {
  for (const [name, data, message] of cases) {
    test(`${name} is refused`, () => {
      assert.throws(() => read([data]), { name: 'StreamError', message });
      assert.throws(() => read(singleBytes(data)), { name: 'StreamError', message });
    });
  }
}

describe('a list', () => {
  refusedBy(readList, [
    ['nothing', bytes(), /ended inside a list/],
    ['JSON', bytes('{"kind":"ServiceList"}'), /bytes 0x7b226b69 where an object/],
    ['only the magic', bytes('k8s\0'), /ended inside a list/],
    ['an answer cut short', list(field(2, named)).subarray(0, -6), /ended inside a list/],
    ['a Status', object('Status', field(3, 'no')), /kind "Status": it is not a list/],
    ['a list without a version', object('ServiceList', field(2, named)), /without a resourceVersion/],
    ['two lists', bytes(list(), field(2, version)), /two lists/],
    [
      'an item beyond the end of the list',
      object('ServiceList', version, bytes(0x12, 5, 'ab')),
      /shorter than its parts/,
    ],
    [
      'a header beyond the end of the list',
      object('ServiceList', version, bytes(0x12)),
      /ended inside|shorter|wire type/,
    ],
    [
      'an item of 2 GB',
      bytes('k8s\0', 0x12, varint(2 ** 32), 0x12, varint(2 ** 31)),
      /an item of a list is larger than 16777216/,
    ],
    [
      'metadata of 2 GB',
      bytes('k8s\0', 0x12, varint(2 ** 32), 0x0a, varint(2 ** 31)),
      /envelope of a list is larger/,
    ],
    ['an endless number', bytes('k8s\0', Buffer.alloc(20, 0xff)), /more than 10 bytes/],
    ['a group', bytes('k8s\0', 0x2b, 0x2c), /wire type 3/],
    ['a wire type that does not exist', bytes('k8s\0', 0x2f), /wire type 7/],
    [
      'a type in the form of a number',
      bytes('k8s\0', field(1, 0x10, 5), field(2, version)),
      /typeMeta|kind: want a string, got 5/,
    ],
    ['a compressed list', bytes(list(), field(3, 'gzip')), /unknown encoding "gzip"/],
    ['a broken item', list(field(2, 0x0a, 9, 'a')), /a field that is longer than its message/],
  ]);

  test('may have unknown fields of every type', () => {
    const unknown = bytes(0x78, 0x80, 1, 0x79, Buffer.alloc(8), 0x7d, Buffer.alloc(4), field(15, 'x'));
    const answer = bytes(
      'k8s\0',
      unknown,
      field(1, field(2, 'ServiceList')),
      field(2, unknown, version, field(2, unknown, named, unknown)),
    );
    assert.equal(readList([answer]).length, 1);
    assert.equal(readList(singleBytes(answer)).length, 1);
  });

  test('without items and without an end is refused', () => {
    const reader = protobufEncoding.list();
    const filler = Buffer.concat(Array<Buffer>(1000).fill(field(3)));
    const push = (chunk: Buffer) => [...reader.push(chunk)];
    push(bytes('k8s\0', 0x12, varint(2 ** 40), version));
    assert.throws(
      () => {
        for (let i = 0; i < 1000; i++) push(filler);
      },
      { name: 'StreamError', message: /envelope of a list is larger than 1048576/ },
    );
  });

  test('keeps no bytes of a field that is not in use', () => {
    const splitter = new ListSplitter(100);
    const [part] = splitter.push(list(field(3, Buffer.alloc(1_000_000)), field(2, named)));
    assert.equal(part?.name, 'typeMeta');
  });
});

describe('a watch', () => {
  refusedBy(readWatch, [
    ['a length cut short', bytes(0, 0, 1), /ended inside a watch event/],
    ['an event cut short', added(named).subarray(0, -1), /ended inside a watch event/],
    ['a frame of 2 GB', bytes(0x7f, 0xff, 0xff, 0xff), /larger than 16777216/],
    ['a frame of 4 GB', bytes(0xff, 0xff, 0xff, 0xff), /larger than 16777216/],
    ['JSON', bytes('{"type":"ADDED"}'), /larger than 16777216/],
    ['an empty event', frame(), /type "" without an object/],
    ['an event without an object', frame(field(1, 'ADDED')), /type "ADDED" without an object/],
    [
      'an unknown type',
      frame(field(1, 'MOVED'), field(2, field(1, object('Service')))),
      /unknown type "MOVED"/,
    ],
    [
      'an object without its magic',
      frame(field(1, 'ADDED'), field(2, field(1, 'abcdef'))),
      /bytes 0x61626364 where/,
    ],
    [
      'a bookmark without a version',
      frame(field(1, 'BOOKMARK'), field(2, field(1, object('Service', named)))),
      /without a resourceVersion/,
    ],
    ['a truncated number', added(bytes(0x0a, 2, 0x08, 0x80)), /message that ends inside a number/],
    ['an endless number', added(bytes(0x80, Buffer.alloc(11, 0x80))), /more than 10 bytes/],
    ['a length beyond the message', added(bytes(0x0a, 100)), /a field that is longer than its message/],
    [
      'a negative length',
      added(bytes(0x0a, Buffer.alloc(9, 0xff), 1)),
      /a field that is longer than its message/,
    ],
    ['field number 0', added(bytes(0x02, 0)), /field with tag 2/],
    ['a group', added(bytes(0x2b, 0x2c)), /wire type 3/],
    ['a cut fixed number', added(bytes(0x79, 1, 2)), /message that ends inside a field/],
    ['a type in the form of a number', frame(bytes(0x08, 1)), /type: want a string, got 1/],
  ]);

  test('text that is not UTF-8 is a fault of the object', () => {
    const event = added(named, field(2, field(3, 0xff, 0xfe)));
    assert.throws(() => readWatch([event]), { name: 'ObjectError', field: 'spec.clusterIP', object: 'a' });
    const labels = field(1, field(1, 'a'), field(11, field(1, 'kubernetes.io/service-name'), field(2, 0xff)));
    const slice = frame(field(1, 'ADDED'), field(2, field(1, object('EndpointSlice', labels))));
    assert.throws(() => readWatch([slice], 'endpointSlices'), {
      name: 'ObjectError',
      field: 'metadata.labels["kubernetes.io/service-name"]',
    });
  });

  test('malformed bytes in an object with a name are a fault of that object', () => {
    const cases: [field: string, part: Buffer][] = [
      ['spec', field(2, 0x0a, 100)],
      ['spec.ports[0]', field(2, field(1, 0x18, 0x80))],
      ['spec.ports[1]', field(2, field(1), field(1, 'none'))],
      ['', bytes(0x2b)],
    ];
    for (const [place, part] of cases) {
      assert.throws(() => readWatch([added(named, part)]), {
        name: 'ObjectError',
        object: 'a',
        field: place,
      });
    }
  });

  test('an object of another kind is refused by name', () => {
    assert.throws(() => readWatch([added(named)], 'nodes'), {
      name: 'ObjectError',
      field: 'kind',
      object: 'a',
    });
  });

  test('bytes of one text are not taken for the characters of another', () => {
    const named = (...name: (string | number)[]) => added(field(1, field(1, ...name)));
    const names = [named('Ã©'), named('é'), named(0xc3, 0xa9), named('Ã©')];
    assert.deepEqual(
      readWatch(names).map((service) => (service as { name: string }).name),
      ['Ã©', 'é', 'é', 'Ã©'],
    );
  });

  test('the limit of an event holds before its bytes arrive', () => {
    const splitter = new FrameSplitter(100);
    assert.throws(() => [...splitter.push(bytes(0, 0, 0, 101))], /larger than 100 bytes/);
  });
});

test('a refusal that is not a Status is left as text', () => {
  assert.equal(protobufEncoding.refusal(bytes('no such page')), 'no such page');
  assert.equal(protobufEncoding.refusal(object('Service', named)), undefined);
});

/** `KPT_FUZZ=1000000` tries as many. */
const inputs = Number(process.env.KPT_FUZZ ?? 4000);

test('any bytes are read, or refused with StreamError or ObjectError', () => {
  const random = mulberry32(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const originals = recordedAnswers.flatMap(({ protobuf, resource }) =>
    protobuf === undefined ? [] : [{ data: Buffer.from(protobuf.body, 'base64'), resource }],
  );
  for (let i = 0; i < inputs; i++) {
    const { data, resource } = originals[below(originals.length)] ?? assert.fail();
    const damaged = damage(data, below);
    const chunks = cut(damaged, [below(2 ** 30), below(2 ** 30)]);
    tryReading(chunks, resource);
    protobufEncoding.refusal(damaged);
  }
});

function tryReading(chunks: readonly Buffer[], resource: ResourceName): void {
  for (const reader of [protobufEncoding.list(), protobufEncoding.watch()]) {
    try {
      for (const chunk of chunks) {
        for (const part of reader.push(chunk)) {
          const object = 'decode' in part ? part : 'object' in part ? part.object : undefined;
          if (object !== undefined) decodeAll(object, resource);
        }
      }
      reader.end();
    } catch (error) {
      assert.ok(error instanceof StreamError, String(error));
    }
  }
}

function decodeAll(object: ReceivedObject, resource: ResourceName): void {
  try {
    object.decode(resource, (text) => text);
  } catch (error) {
    if (!(error instanceof ObjectError)) throw error;
  }
}

/** Changes, removes, repeats or inserts bytes in a few places. */
function damage(data: Buffer, below: (limit: number) => number): Buffer {
  let damaged = data;
  for (let n = below(6); n >= 0; n--) {
    const at = below(damaged.length + 1);
    const end = Math.min(damaged.length, at + below(8));
    const before = damaged.subarray(0, at);
    const piece = damaged.subarray(at, end);
    const inserted = [
      () => Buffer.alloc(0),
      () => Buffer.concat([piece, piece]),
      () => Buffer.from(piece.map(() => below(256))),
      () => Buffer.of([0, 0x7f, 0x80, 0xff, below(256)][below(5)] ?? 0),
      () => Buffer.alloc(below(12), 0xff),
    ][below(5)]?.();
    damaged = Buffer.concat([before, inserted ?? piece, damaged.subarray(end)]);
  }
  return damaged;
}
