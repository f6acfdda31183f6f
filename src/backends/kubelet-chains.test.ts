import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kubeletOwnerOf, localnetComment, proxyChainNames } from './kubelet-chains.ts';

test('chains of the kubelet are not taken for those of kube-proxy', () => {
  for (const chain of [
    'KUBE-SERVICES',
    'KUBE-PROXY-FIREWALL',
    'KUBE-FW-ABC',
    'KUBE-MARK-MASQ',
    'KUBE-FIREWALLED',
  ]) {
    assert.ok(proxyChainNames.test(chain), chain);
    assert.equal(kubeletOwnerOf(chain, null), undefined);
  }
  for (const chain of ['KUBE-FIREWALL', 'KUBE-KUBELET-CANARY', 'KUBE-IPTABLES-HINT', 'KUBE-MARK-DROP']) {
    assert.ok(!proxyChainNames.test(chain), chain);
    assert.equal(kubeletOwnerOf(chain, 'kubernetes firewall for dropping marked packets'), 'the kubelet');
  }
  assert.ok(!proxyChainNames.test('OUTPUT'));
});

test('both the kubelet and kube-proxy write the rule against packets to loopback addresses', () => {
  assert.equal(kubeletOwnerOf('KUBE-FIREWALL', localnetComment), 'the kubelet or kube-proxy');
});
