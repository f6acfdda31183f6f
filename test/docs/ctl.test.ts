import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { allCommands } from '../../src/ctl/all-commands.ts';
import { allFlags } from '../../src/ctl/flags.ts';
import { commandHelp, programHelp } from '../../src/ctl/help.ts';

const page = readFileSync(resolve(import.meta.dirname, '../../docs/inspection.md'), 'utf8');
const help = [programHelp(allCommands), ...allCommands.map((command) => commandHelp(command))].join('\n');

test('inspection.md has every command and flag that the help of kube-proxyctl shows', () => {
  const commands = [...help.matchAll(/^ {2}kube-proxyctl ([a-z]+)/gm)].map(([, name]) => name ?? '');
  const flags = [...help.matchAll(/^ {2}(?:-\w, | {4})--([a-z-]+)/gm)].map(([, name]) => name ?? '');
  assert.ok(commands.length > 5 && flags.length > 20);
  for (const name of commands) assert.match(page, new RegExp(`^\\| \`${name}[ \`]`, 'm'));
  for (const name of flags) assert.match(page, new RegExp(`^\\| \`--${name}\``, 'm'));
});

test('documents and help name only flags that kube-proxyctl has', () => {
  const known = new Set(allFlags.map(({ name }) => name));
  const pages = ['inspection.md', 'troubleshooting.md', 'operations.md', 'security.md'].map((name) =>
    readFileSync(resolve(import.meta.dirname, '../../docs', name), 'utf8'),
  );
  for (const text of [...pages, help]) {
    for (const [line] of text.matchAll(/kube-proxyctl [^`\n]*/g)) {
      for (const [, name] of line.matchAll(/(?<= )--([a-z-]+)/g)) assert.ok(known.has(name ?? ''), line);
    }
  }
});

test('help and documents call commands by names that kube-proxyctl has', () => {
  const known = new Set(allCommands.map(({ name }) => name));
  const pages = ['inspection.md', 'troubleshooting.md', 'operations.md'].map((name) =>
    readFileSync(resolve(import.meta.dirname, '../../docs', name), 'utf8'),
  );
  for (const text of [...pages, help]) {
    for (const [call, name = ''] of text.matchAll(/[$`] ?kube-proxyctl ([a-z]+)/g))
      assert.ok(known.has(name), call);
  }
});
