import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dataText, namesText } from './command.ts';

test('no form of an answer has control characters of the objects in it', () => {
  const name = 'a\u001b[2J\u007f\u009b1Ab';
  for (const text of [dataText('json', { name }), dataText('yaml', { name }), namesText([name])]) {
    assert.doesNotMatch(text.replaceAll('\n', ''), /\p{Cc}/u);
  }
  assert.deepEqual(JSON.parse(dataText('json', { name })), { name });
});
