import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { gateEffects } from '../../scripts/docs/gate-effects.ts';
import { replaceSection, table } from '../../scripts/docs/markdown.ts';
import { metricAdvice } from '../../scripts/docs/metric-advice.ts';
import { declaredMetrics } from '../../scripts/docs/metrics.ts';
import { generatedPages } from '../../scripts/docs/pages.ts';

const src = resolve(import.meta.dirname, '../../src');

test('generated sections and files are up to date; npm run docs updates them', async () => {
  for (const { path, present, wanted } of await generatedPages()) assert.equal(present, wanted, path);
});

test('there is advice for every metric of the proxy, and for no other', async () => {
  const names = [...(await declaredMetrics()).keys()].filter((name) => name.startsWith('kubeproxy_'));
  assert.deepEqual(Object.keys(metricAdvice).sort(), names.sort());
});

test('the feature gates that the documents describe are those that the sources use', () => {
  // These two set all gates of a stage; no source uses them by name.
  const stages = ['AllAlpha', 'AllBeta'];
  const asked = globSync('**/*.ts', { cwd: src, exclude: ['**/*.test.ts'] }).flatMap((file) => {
    const text = readFileSync(join(src, file), 'utf8');
    return [...text.matchAll(/(?:[eE]nabled|isTurnedOn)\('(\w+)'\)/g)].map(([, name]) => name ?? '');
  });
  assert.deepEqual(Object.keys(gateEffects).sort(), [...new Set([...asked, ...stages])].sort());
});

describe('sections', () => {
  const page = 'a\n<!-- generated: x (npm run docs) -->\nold\n<!-- end of x -->\nb\n';

  test('a section is replaced between its markers, and stays the same a second time', () => {
    const once = replaceSection(page, 'x', 'new');
    assert.equal(once, 'a\n<!-- generated: x (npm run docs) -->\n\nnew\n\n<!-- end of x -->\nb\n');
    assert.equal(replaceSection(once, 'x', 'new'), once);
  });

  test('replacing a missing or repeated section throws', () => {
    assert.throws(() => replaceSection(page, 'y', 'new'), /generated: y/);
    assert.throws(() => replaceSection(page + page, 'x', 'new'), /one section/);
  });

  test('cells of generated tables cannot end a row', () => {
    assert.equal(table(['a'], [['b|c\nd']]), '| a |\n| --- |\n| b\\|c d |');
  });
});
