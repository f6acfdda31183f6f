import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryIn, renderMemory } from './memory.ts';

const pod = (namespace: string, name: string, container: string, bytes: number) => ({
  podRef: { namespace, name },
  containers: [{ name: container, memory: { workingSetBytes: bytes, rssBytes: bytes - 1 } }],
});

test("the memory of kube-proxy is found in the kubelet's summary", () => {
  const pods = [pod('load', 'kube-proxy-x', 'kube-proxy', 3), pod('kube-system', 'coredns-1', 'coredns', 5)];
  assert.throws(() => memoryIn(JSON.stringify({ pods })), /the kubelet has no figures of kube-proxy/);
  pods.push(pod('kube-system', 'kube-proxy-abcde', 'kube-proxy', 7));
  assert.deepEqual(memoryIn(JSON.stringify({ pods })), { workingSetBytes: 7, rssBytes: 6 });
});

test('the table of memory has the range over the nodes', () => {
  const of = (workingSetBytes: number) => ({ workingSetBytes, rssBytes: 41e6 });
  assert.equal(
    renderMemory(new Map([['ours', [of(52e6), of(49.6e6), of(51e6)]]]), 'nftables'),
    `| memory, nftables mode, 20 Services | working set | resident |
|---|---|---|
| ours | 50 to 52 MB | 41 MB |`,
  );
});
