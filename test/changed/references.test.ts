import assert from 'node:assert/strict';
import { test } from 'node:test';
import { referencesOf } from './references.ts';

test('imports of every form are references, and packages are not', () => {
  const text = `
import assert from 'node:assert/strict';
import fc from 'fast-check';
import './effects.ts';
import { a, type B } from './a.ts';
import {
  c,
  d,
} from '../lib/cd.ts';
export { e } from './e.ts';
const late = await import('./late.ts');
`;
  assert.deepEqual(referencesOf('test/kube/x.test.ts', text), [
    'test/kube/a.ts',
    'test/kube/e.ts',
    'test/kube/effects.ts',
    'test/kube/late.ts',
    'test/lib/cd.ts',
  ]);
});

test('imports of types are no references, since they are erased', () => {
  const text = `
import type { A } from './a.ts';
import type { B } from './b.ts';
import { c } from './c.ts';
export type { D } from './d.ts';
`;
  assert.deepEqual(referencesOf('src/x.ts', text), ['src/c.ts']);
});

test('workers, scripts and recorded data are references', () => {
  const text = `
const worker = new URL('./worker.ts', import.meta.url);
const script = new URL(
  'script.ts',
  import.meta.url,
);
const vectors = join(import.meta.dirname, '../../test/vectors/ipvs');
const page = new URL(\`../../test/vectors/pages/\${mode}.json\`, import.meta.url);
`;
  assert.deepEqual(referencesOf('src/admin/x.ts', text), [
    'src/admin/script.ts',
    'src/admin/worker.ts',
    'test/vectors/ipvs',
    'test/vectors/pages/',
  ]);
});

test('paths to the project itself or outside of it are no references', () => {
  const text = "resolve(import.meta.dirname, '../..'); new URL('../../../x', import.meta.url);";
  assert.deepEqual(referencesOf('test/docs/x.test.ts', text), []);
});
