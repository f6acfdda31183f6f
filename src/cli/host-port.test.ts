import assert from 'node:assert/strict';
import { test } from 'node:test';
import { splitHostPort } from './host-port.ts';

test('host and port are split at the last colon, with or without brackets', () => {
  assert.deepEqual(splitHostPort('1.2.3.4:80'), { host: '1.2.3.4', port: '80' });
  assert.deepEqual(splitHostPort('[fd00::1]:80'), { host: 'fd00::1', port: '80' });
  assert.deepEqual(splitHostPort('host:'), { host: 'host', port: '' });
  assert.deepEqual(splitHostPort(':80'), { host: '', port: '80' });
  assert.deepEqual(splitHostPort('[]:80'), { host: '', port: '80' });
});

const faults: [text: string, fault: string][] = [
  ['', 'missing port in address'],
  ['host', 'missing port in address'],
  ['[::1]', 'missing port in address'],
  ['[::1]x:80', 'missing port in address'],
  ['[::1]:80:81', 'too many colons in address'],
  ['a:b:c', 'too many colons in address'],
  ['fd00::1:zz:80', 'too many colons in address'],
  ['[::1:80', "missing ']' in address"],
  ['[[a]:80', "unexpected '[' in address"],
  ['a[:80', "unexpected '[' in address"],
  ['a]:80', "unexpected ']' in address"],
  ['[a]:8]0', "unexpected ']' in address"],
];

for (const [text, fault] of faults) {
  test(`${JSON.stringify(text)}: ${fault}`, () => assert.deepEqual(splitHostPort(text), { fault }));
}
