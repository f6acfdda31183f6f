import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchTargets } from './kube.ts';

test('the field selector of the own node escapes special characters', () => {
  assert.equal(watchTargets('n1.example').nodes.fieldSelector, 'metadata.name=n1.example');
  assert.equal(watchTargets('a,b=c\\d').nodes.fieldSelector, 'metadata.name=a\\,b\\=c\\\\d');
});
