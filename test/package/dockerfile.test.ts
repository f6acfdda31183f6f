/** Checks of the Dockerfile that need no container engine. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { parseDockerfile } from '../../scripts/image/dockerfile.ts';
import { imageStages, settingsOf } from '../../scripts/image/rootfs.ts';

const project = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(project, path), 'utf8');

describe('the Dockerfile', () => {
  const stages = imageStages();

  test('makes an image for all modes by default, which starts as upstream does', () => {
    assert.deepEqual(
      stages.map(({ name }) => name),
      ['build', 'nftables', 'full'],
    );
    for (const stage of stages.slice(1)) {
      assert.deepEqual(settingsOf(stage).entrypoint, ['/usr/local/bin/kube-proxy']);
    }
  });

  test('builds with the Node that the program runs with, on the Debian that it runs on', () => {
    const { engines, optionalDependencies } = JSON.parse(read('package.json')) as {
      engines: { node: string };
      optionalDependencies: Record<string, string>;
    };
    const [build, , full] = stages.map(({ base }) => base);
    const [, major, release] = /^node:(\d+)-(\w+)-slim$/.exec(build ?? '') ?? [];
    assert.equal(`>=${major}`, engines.node);
    for (const version of Object.values(optionalDependencies)) assert.equal(version.split('.')[0], major);
    assert.equal(full, `debian:${release}-slim`);
  });

  test('copies only files that exist and that .dockerignore does not exclude', () => {
    const letThrough = read('.dockerignore').split('\n');
    assert.equal(letThrough[0], '*');
    const copied = stages.flatMap(({ instructions }) =>
      instructions
        .filter(({ name, flags }) => name === 'COPY' && !flags.has('from'))
        .flatMap(({ text }) => text.split(' ').slice(0, -1)),
    );
    assert.ok(copied.length > 5);
    for (const path of copied) {
      assert.ok(existsSync(join(project, path)), path);
      assert.ok(letThrough.includes(`!${path}`), path);
    }
  });
});

test('a line that the parser does not support is an error that names it', () => {
  for (const [text, message] of [
    ['RUN true', /^Error: line 1: "RUN true" comes before the first FROM$/],
    ['FROM scratch AS a\n\nADD x y', /^Error: line 3: cannot follow "ADD x y"$/],
    ['FROM scratch AS a\nRUN one \\\n  two', /^Error: line 2: cannot follow/],
  ] as const) {
    assert.throws(() => parseDockerfile(text), message);
  }
});
