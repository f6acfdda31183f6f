import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchTargets } from './kube.ts';

test('the own node is selected by name, whatever is in it', () => {
  assert.equal(watchTargets('n1.example').nodes.fieldSelector, 'metadata.name=n1.example');
  assert.equal(watchTargets('a,b=c\\d').nodes.fieldSelector, 'metadata.name=a\\,b\\=c\\\\d');
});
