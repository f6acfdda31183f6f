import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { kubeProxy, logMessages, run } from './run.ts';

interface Case {
  readonly case: string;
  readonly config: string;
  readonly exit: number;
  readonly stderr: readonly string[];
}

const vectors = resolve(import.meta.dirname, '../vectors/cli/bad-configs.json');
const { cases } = JSON.parse(readFileSync(vectors, 'utf8')) as { cases: readonly Case[] };
const directory = mkdtempSync(join(tmpdir(), 'kpt-bad-configs-'));

function recordedCase(name: string): string[] {
  const lines = cases.find((vector) => vector.case === name)?.stderr ?? [];
  return lines.map((line) => line.replace(/^\S+\.go:\d+\] /, ''));
}

/** Intended differences from the recordings: our messages, and why they differ. */
const differences: Record<string, { readonly stderr: readonly string[]; readonly why: string }> = {
  'userspace-mode': {
    why: 'userspace mode exists here, so this configuration is valid and stops at the missing kubeconfig',
    stderr: [
      '"Error running ProxyServer" err="stat /does/not/exist: no such file or directory"',
      '"command failed" err="stat /does/not/exist: no such file or directory"',
    ],
  },
  'duplicate-key': {
    why: 'the recording lacks the record, of several lines, that reports the duplicate',
    stderr: [
      '"Using lenient decoding as strict decoding failed" err=<',
      '\tstrict decoding error: yaml: unmarshal errors:',
      '\t  line 4: key "mode" already set in map',
      ' >',
      ...recordedCase('duplicate-key'),
    ],
  },
  'hidden-metrics': {
    why: 'the recorded build had no version number and named an impossible previous one; ours is 1.37',
    stderr: [
      '"command failed" err="failed validate: KubeProxyConfiguration.ShowHiddenMetricsForVersion: Invalid value: \\"0.1\\": invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: \\"0.1\\": must be omitted or have the value \'1.36\'; only the previous minor version is allowed"',
    ],
  },
};

/** Removes Go types and source files, which our messages do not have, and adds the mode that upstream does not have. */
function inOurWords(message: string): string {
  return message
    .replace('iptables, ipvs, nftables or blank', 'iptables, ipvs, nftables, userspace or blank')
    .replace(/ in scheme \\"[^"]*\\"/g, '')
    .replace(/ into Go struct field \S+ of type \S+/g, '')
    .replace(/ into Go value of type .*/g, '')
    .replace(/"$/, '');
}

/** Sorts several field errors, because their order has no meaning. */
function withSortedErrors(message: string): string {
  return message.replace(/failed validate: \[(.*)\]/, (_, list: string) => {
    return `failed validate: [${list.split(', KubeProxy').sort().join(', KubeProxy')}]`;
  });
}

const comparable = (message: string): string => withSortedErrors(inOurWords(message));

describe('bad configurations, as recorded from upstream', () => {
  after(() => rmSync(directory, { recursive: true }));

  for (const vector of cases) {
    const difference = differences[vector.case];
    it(vector.case + (difference ? ` (differs: ${difference.why})` : ''), async () => {
      const file = join(directory, `${vector.case}.yaml`);
      writeFileSync(file, vector.config);
      const { code, stderr } = await run(kubeProxy, ['--config', file]);
      const expected = difference?.stderr ?? recordedCase(vector.case);
      assert.deepEqual(logMessages(stderr).map(comparable), expected.map(comparable));
      assert.equal(code, vector.exit);
    });
  }
});
