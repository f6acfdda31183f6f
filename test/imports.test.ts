import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';

const src = resolve(import.meta.dirname, '../src');

/** What each folder of src/ may import besides itself (docs/architecture.md). */
const allowed: Record<string, readonly string[]> = {
  cli: ['config', 'model', 'lib'],
  config: ['model', 'lib'],
  kube: ['model', 'obs', 'lib'],
  sources: ['kube', 'model', 'obs', 'lib'],
  model: ['lib'],
  state: ['model', 'lib'],
  plan: ['model', 'lib'],
  proxier: [
    'backends/backend.ts',
    'inspect/family-view.ts',
    'state',
    'plan',
    'health',
    'conntrack',
    'sources/source.ts',
    'model',
    'obs',
    'lib',
  ],
  inspect: ['plan', 'backends/backend.ts', 'backends/inspection.ts', 'model', 'lib'],
  forwarder: ['native', 'model', 'lib'],
  backends: ['forwarder', 'plan', 'model', 'kernel', 'config/types.ts', 'obs', 'lib'],
  conntrack: ['model', 'kernel', 'obs', 'lib'],
  health: ['model', 'obs', 'lib'],
  kernel: ['native', 'model', 'obs', 'lib'],
  native: ['lib'],
  obs: ['lib'],
  admin: ['inspect', 'obs', 'health', 'state', 'plan', 'config', 'lib'],
  lib: [],
};

test('imports point down the layers only', () => {
  const violations: string[] = [];
  for (const file of sourceFiles(src)) {
    const from = relative(src, file);
    const layer = from.split('/')[0] ?? '';
    // main.ts, app/ and ctl/ are the composition roots and may import everything; tests may, too.
    if (!from.includes('/') || layer === 'app' || layer === 'ctl' || from.endsWith('.test.ts')) continue;
    const rules = allowed[layer];
    assert.ok(rules, `src/${layer}/ has no import rule; add it here and to docs/architecture.md`);
    for (const target of importsOf(file)) {
      const to = relative(src, resolve(dirname(file), target));
      const ok = to.startsWith(`${layer}/`) || rules.some((rule) => to === rule || to.startsWith(`${rule}/`));
      if (!ok) violations.push(`${from} imports ${to}`);
    }
  }
  assert.deepEqual(violations, []);
});

test('a mode imports no other mode', () => {
  for (const file of sourceFiles(join(src, 'backends'))) {
    const [, mode, rest] = relative(src, file).split('/');
    if (rest === undefined) continue;
    for (const target of importsOf(file)) {
      const [layer, other, inside] = relative(src, resolve(dirname(file), target)).split('/');
      const foreign = layer === 'backends' && inside !== undefined && other !== mode;
      assert.ok(!foreign, `${relative(src, file)} imports backends/${other}/${inside}`);
    }
  }
});

function sourceFiles(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(directory, name));
}

/** Relative module specifiers of static imports, exports-from and dynamic imports. */
function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/(?:from\s+|import\(\s*|import\s+)'(\.[^']+)'/g)].map((match) => match[1] ?? '');
}
