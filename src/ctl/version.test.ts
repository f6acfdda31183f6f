import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { testInspector } from '../../test/inspected-proxy.ts';
import { product, productText } from '../lib/product.ts';
import { versionReport, versionText } from './version.ts';

const own = `${productText(product)}, for Kubernetes v1.37.0`;

test('version shows client and proxy', async () => {
  const report = await versionReport({ status: async () => testInspector({}, new FakeClock()).status() });
  assert.equal(versionText(report), `kube-proxyctl: ${own}\nkube-proxy:    ${own}, on node n1\n`);
});

test('version shows the client and the reason when the proxy does not answer', async () => {
  const report = await versionReport({ status: () => Promise.reject(new Error('cannot ask kube-proxy')) });
  assert.equal(versionText(report), `kube-proxyctl: ${own}\nkube-proxy:    cannot ask kube-proxy\n`);
});

test('version shows what a proxy tells that does not know its own version', async () => {
  const { product: _, ...status } = testInspector({}, new FakeClock()).status();
  const report = await versionReport({ status: async () => status });
  assert.match(versionText(report), /kube-proxy: {4}an earlier kube-proxy-ts, for Kubernetes v1\.37\.0, on/);
});
