import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordedAnswers } from './answers.ts';
import { encodeContent, encodeList, encodeObject, encodeWatchFrame } from './envelope.ts';

describe('the encoder writes what kube-apiserver writes for', () => {
  for (const { name, json, protobuf } of recordedAnswers) {
    if (protobuf === undefined) continue;
    test(name, () => {
      const objects = json.body
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      const bytes = Buffer.concat(objects.map((object) => encodeAnswer(object)));
      assert.equal(bytes.toString('base64'), protobuf.body);
    });
  }
});

interface Answer {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: object;
  readonly items?: readonly object[];
  /** Of an event. */
  readonly type?: string;
  readonly object?: Answer;
}

function encodeAnswer({ type, object, items, ...rest }: Answer): Buffer {
  if (type !== undefined && object !== undefined) return encodeWatchFrame(type, encodeAnswer(object));
  if (items === undefined) return encodeObject(rest, encodeContent(rest.kind, { type, ...rest }));
  const kind = rest.kind.replace(/List$/, '');
  return encodeList(
    rest,
    rest.metadata,
    items.map((item) => encodeContent(kind, item)),
  );
}
