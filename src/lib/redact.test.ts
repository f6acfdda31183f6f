import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redact, redactLines } from './redact.ts';

const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl-_';
const pem = '-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIKsecretsecret\n-----END EC PRIVATE KEY-----';

test('tokens, passwords, keys and certificates are redacted in every form', () => {
  for (const [text, clean] of [
    [`token is ${jwt}, ok`, 'token is <redacted>, ok'],
    [`Authorization: Bearer opaque-token-1`, 'Authorization: <redacted> <redacted>'],
    ['got Bearer opaque-token-1.', 'got Bearer <redacted>'],
    ['{"token":"abc","a":1}', '{"token":"<redacted>","a":1}'],
    ['"{\\"token\\":\\"abc\\",\\"a\\":1}"', '"{\\"token\\":\\"<redacted>\\",\\"a\\":1}"'],
    ['--token=abc --v=2', '--token=<redacted> --v=2'],
    ['client-key-data: c2VjcmV0', 'client-key-data: <redacted>'],
    ['password: hunter2', 'password: <redacted>'],
    [`a ${pem} b`, 'a <redacted> b'],
    [JSON.stringify(pem), '"<redacted>"'],
    [`data ${Buffer.from(pem).toString('base64')}`, 'data <redacted>'],
    ['join abcdef.0123456789abcdef', 'join <redacted>'],
    ['https://me:pass@192.0.2.1:6443/x', 'https://<redacted>@192.0.2.1:6443/x'],
  ] as const) {
    assert.equal(redact(text), clean);
  }
});

test('names, addresses and numbers stay as they are', () => {
  for (const text of [
    'kube_seconds_sum 123456.1234567890123456',
    '{"service":"shop/token-service:http/TCP","clusterIP":"10.96.0.1"}',
    'https://192.0.2.1:6443',
    'ip daddr . meta l4proto . th dport vmap @service-ips comment "shop/web:http/TCP"',
    'sha256 5838ac0f2b1e5838ac0f2b1e5838ac0f2b1e5838ac0f2b1e5838ac0f2b1e5838',
  ]) {
    assert.equal(redact(text), text);
  }
});

test('a PEM block is redacted wherever the pieces of a text are cut', async () => {
  const text = `first\n${pem}\nlast ${jwt}\nend`;
  for (let size = 1; size < text.length; size++) {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size));
    let clean = '';
    for await (const part of redactLines(pieces)) clean += part;
    assert.equal(clean, 'first\n<redacted>\n\nlast <redacted>\nend', String(size));
  }
});
