import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forwardRules, masqueradeMarked, podSource } from './rule-text.ts';

test('the mark of a bit is eight digits', () => {
  const marks = [0, 14, 31].map((bit) => masqueradeMarked(bit).at(-1)?.split(' ').at(-1));
  assert.deepEqual(marks, ['0x00000001', '0x00004000', '0x80000000']);
});

test('the mark is in every rule that sets, tests or clears it', () => {
  assert.deepEqual(masqueradeMarked(31), [
    '-A KUBE-POSTROUTING -m mark ! --mark 0x80000000/0x80000000 -j RETURN',
    '-A KUBE-POSTROUTING -j MARK --xor-mark 0x80000000',
    '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    '-A KUBE-MARK-MASQ -j MARK --or-mark 0x80000000',
  ]);
  assert.match(forwardRules(31)[0] ?? '', /-m mark --mark 0x80000000\/0x80000000 -j ACCEPT$/);
});

test('pods are told by their range or the interface that their packets arrive by', () => {
  assert.equal(podSource({ kind: 'cidr', cidr: '10.244.0.0/16' }), '-s 10.244.0.0/16');
  assert.equal(podSource({ kind: 'interface', name: 'cni0' }), '-i cni0');
  assert.equal(podSource({ kind: 'prefix', prefix: 'veth' }), '-i veth+');
  assert.equal(podSource({ kind: 'none' }), undefined);
});
