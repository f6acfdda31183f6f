import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { defaultOptions } from './flags.ts';
import { serverAddress } from './server-address.ts';

const directory = mkdtempSync(join(tmpdir(), 'kpt-ctl-'));
after(() => rmSync(directory, { recursive: true }));

function configWith(metricsBindAddress: string | undefined): string {
  const file = join(directory, 'config.yaml');
  const meta = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration' };
  writeFileSync(file, JSON.stringify({ ...meta, metricsBindAddress }));
  return file;
}

for (const [address, url] of [
  ['127.0.0.1:1234', 'http://127.0.0.1:1234'],
  ['0.0.0.0:10249', 'http://127.0.0.1:10249'],
  ['[::]:10249', 'http://[::1]:10249'],
  ['192.0.2.7:99', 'http://192.0.2.7:99'],
  ['010.0.0.1:+099', 'http://10.0.0.1:99'],
  [undefined, 'http://127.0.0.1:10249'],
] as const) {
  test(`kube-proxyctl asks metricsBindAddress ${address} at ${url}`, async () => {
    assert.equal(await serverAddress({ ...defaultOptions, config: configWith(address) }, {}), url);
  });
}

test('kube-proxyctl finds the server by --server, then --config, then KUBE_PROXYCTL_SERVER, then its default', async () => {
  const config = configWith('127.0.0.1:1');
  const env = { KUBE_PROXYCTL_SERVER: '127.0.0.1:2' };
  assert.equal(await serverAddress({ ...defaultOptions, server: 'http://x', config }, env), 'http://x');
  assert.equal(await serverAddress({ ...defaultOptions, config }, env), 'http://127.0.0.1:1');
  assert.equal(await serverAddress(defaultOptions, env), '127.0.0.1:2');
  assert.equal(await serverAddress(defaultOptions, { KUBE_PROXYCTL_SERVER: '' }), 'http://127.0.0.1:10249');
});
