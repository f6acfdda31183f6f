import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closest } from './closest.ts';

const words = ['status', 'services', 'endpoints', 'explain', 'top'];

for (const [word, meant] of [
  ['servces', 'services'],
  ['sevrices', 'services'],
  ['servicess', 'services'],
  ['service', 'services'],
  ['serv', 'services'],
  ['stauts', 'status'],
  ['exlpian', 'explain'],
  ['e', undefined],
  ['tpo', 'top'],
  ['get', undefined],
  ['nodes', undefined],
  ['', undefined],
] as const) {
  test(`${JSON.stringify(word)} probably means ${meant ?? 'none of the commands'}`, () =>
    assert.equal(closest(word, words), meant));
}
