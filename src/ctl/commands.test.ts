import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { API_VERSION, type DiffReport, type ServiceReport } from '../inspect/api.ts';
import { commands } from './commands.ts';
import { defaultOptions } from './flags.ts';
import type { ReportSource } from './source.ts';
import { unlimited } from './table.ts';

const nothing = async () => assert.fail('not asked for');

/** Runs a command on a proxy whose kernel differs in one element of shop/web. */
async function run(command: string, ...args: string[]): Promise<{ code: number | undefined; text: string }> {
  const difference = { family: 'IPv4', kind: 'element', object: 'x', wanted: 'y', found: undefined } as const;
  const report: DiffReport = {
    apiVersion: API_VERSION,
    kind: 'Diff',
    mode: 'nftables',
    families: [{ family: 'IPv4', error: null, settled: true, differences: 1 }],
    items: [{ ...difference, service: 'shop/web:http/TCP' }],
  };
  const source: ReportSource = {
    status: nothing,
    services: async ({ name } = {}) => ({
      apiVersion: API_VERSION,
      kind: 'ServiceList',
      items: name === 'api' ? [{ service: 'shop/api/TCP' } as ServiceReport] : [],
    }),
    endpoints: nothing,
    explain: nothing,
    diff: async () => report,
    traffic: nothing,
    affinity: nothing,
    flows: nothing,
    watchFlows: nothing,
    journal: nothing,
    close: nothing,
  };
  const written: string[] = [];
  const stdout = { write: (text: string) => written.push(text) };
  const code = await commands
    .find(({ name }) => name === command)
    ?.run({
      args,
      options: defaultOptions,
      source,
      terminal: { stdout, stderr: stdout, env: {} },
      paint: (_style, text) => text,
      layout: unlimited,
      clock: new FakeClock(),
    });
  return { code, text: written.join('') };
}

test('diff NAME takes any name of a service port', async () => {
  for (const name of ['web', 'shop/web', 'shop/web:http', 'shop/web:http/TCP']) {
    const { code, text } = await run('diff', name);
    assert.equal(code, 2, name);
    assert.match(text, /^IPv4: 1 difference\n/);
  }
});

test('diff NAME is empty for an unaffected service port, and an error for an unknown one', async () => {
  assert.deepEqual(await run('diff', 'api'), { code: 0, text: 'IPv4: no difference\n' });
  await assert.rejects(run('diff', 'wbe'), /no service port is called "wbe"/);
});
