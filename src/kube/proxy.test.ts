import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proxyFromEnv } from './proxy.ts';

test('the environment chooses a proxy by scheme', () => {
  const env = { HTTPS_PROXY: 'http://p:3128', http_proxy: 'q:80' };
  assert.equal(proxyFromEnv(new URL('https://10.0.0.1:6443'), env)?.href, 'http://p:3128/');
  assert.equal(proxyFromEnv(new URL('http://10.0.0.1:8080'), env)?.href, 'http://q/');
  assert.equal(proxyFromEnv(new URL('https://10.0.0.1'), {}), undefined);
  assert.throws(
    () => proxyFromEnv(new URL('https://a'), { HTTPS_PROXY: 'socks5://p' }),
    /HTTPS_PROXY: scheme "socks5"/,
  );
});

test('NO_PROXY exempts hosts, domains, addresses and CIDRs', () => {
  const cases: [noProxy: string, server: string, exempt: boolean][] = [
    ['', 'https://localhost:6443', true],
    ['', 'https://127.0.0.2:6443', true],
    ['', 'https://[::1]:6443', true],
    ['', 'https://10.0.0.1:6443', false],
    ['*', 'https://10.0.0.1:6443', true],
    ['10.0.0.1', 'https://10.0.0.1:6443', true],
    ['10.0.0.1:6443', 'https://10.0.0.1:6443', true],
    ['10.0.0.1:443', 'https://10.0.0.1:6443', false],
    ['10.0.0.0/8, 192.168.0.0/16', 'https://10.9.9.9:6443', true],
    ['10.0.0.0/8', 'https://11.0.0.1', false],
    ['fd00::1', 'https://[fd00::1]:6443', true],
    ['[fd00::1]:6443', 'https://[fd00::1]:6443', true],
    ['fd00::/8', 'https://[fd00::1]:6443', true],
    ['example.com', 'https://example.com', true],
    ['example.com', 'https://api.example.com', true],
    ['example.com', 'https://badexample.com', false],
    ['.example.com', 'https://api.example.com', true],
    ['.example.com', 'https://example.com', false],
    ['*.example.com', 'https://api.Example.com', true],
  ];
  for (const [NO_PROXY, server, exempt] of cases) {
    const proxy = proxyFromEnv(new URL(server), { HTTPS_PROXY: 'http://p', NO_PROXY });
    assert.equal(proxy === undefined, exempt, `${NO_PROXY} and ${server}`);
  }
});
