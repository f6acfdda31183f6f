/** The real program while another one keeps changing its rules. Shares of time are printed; the tests assert none. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { after, afterEach, before, describe, test } from 'node:test';
import type { StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { ctl } from '../ctl/ctl.ts';
import { Fighter } from './fighter.ts';
import { inspect } from './served-pages.ts';
import { SoleNode } from './sole-node.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);

const target = '10.96.0.1';
/** More than any number of repairs that a fixed pause would allow in the time that a test waits. */
const FLUSHES = 15;
const CLOCK_TICKS_PER_SECOND = 100;

describe('a program that keeps changing the rules', { skip }, () => {
  let node: SoleNode;
  let fighter: Fighter | undefined;

  before(async () => {
    node = await SoleNode.open();
    node.site.api.put('services', apiService('web', 80, { clusterIP: target }));
    node.site.api.put('endpointSlices', apiSlice('web', [SoleNode.address]));
    await node.start();
    await node.eventually('the first sync', () => node.answers(target));
  });
  afterEach(() => fighter?.stop());
  after(() => node.close());

  async function page(name: 'healthz' | 'livez'): Promise<{ code: number; body: string }> {
    const response = await fetch(`http://127.0.0.1:10256/${name}`);
    return { code: response.status, body: await response.text() };
  }

  async function ipv4(): Promise<StatusReport['families'][number]> {
    const { families } = await inspect<StatusReport>('status');
    return families.find(({ family }) => family === 'IPv4') ?? assert.fail('no IPv4');
  }

  /** CPU time of the program so far, in seconds. */
  function cpuSeconds(): number {
    const stat = readFileSync(`/proc/${node.pid}/stat`, 'utf8');
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13);
    return (Number(user) + Number(system)) / CLOCK_TICKS_PER_SECOND;
  }

  test('every flush is repaired soon, however many there are, and counted as one repair', async (t) => {
    assert.equal((await page('healthz')).code, 200);
    assert.equal((await ctl('status')).code, 0);
    const before = (await ipv4()).repairs;
    const begun = performance.now();
    for (let i = 0; i < FLUSHES; i++) {
      await node.nft('flush', 'ruleset');
      await node.eventually(`flush ${i + 1} undone`, () => node.answers(target), { withinMs: 20_000 });
    }
    t.diagnostic(`${FLUSHES} flushes took ${Math.round(performance.now() - begun)} ms`);
    await node.eventually('all counted', async () => (await ipv4()).repairs - before >= FLUSHES);
    const { repairs, lastRepairCause } = await ipv4();
    // Events that come late may cause a second repair.
    assert.ok(repairs - before <= 2 * FLUSHES, `${repairs - before} repairs`);
    assert.match(lastRepairCause?.by ?? '', /^nft\[\d+\]$/);
    assert.match(node.log, /"Another program keeps changing table kube-proxy; .*by="nft\[\d+\]"/);
    assert.equal(await node.metric('kubeproxy_ts_repairs_total{ip_family="IPv4"'), repairs);
  });

  test('while rules are wrong, /healthz, status and its exit code say so, and /livez does not', async (t) => {
    const [cpu, begun] = [cpuSeconds(), performance.now()];
    fighter = Fighter.nft('delete table ip kube-proxy');
    let unhealthy = '';
    await node.eventually('/healthz 503', async () => {
      assert.equal((await page('livez')).code, 200);
      const { code, body } = await page('healthz');
      unhealthy = body;
      return code === 503;
    });
    assert.match(unhealthy, /"problems":\["IPv4: rules are wrong: repair .*; changed by nft\[\d+\] \(/);
    let shown = '';
    // Between a repair and the next damage, the status is 2 as well, but the rules are right.
    await node.eventually('a status of 2 with wrong rules', async () => {
      const { code, stdout } = await ctl('status');
      shown = stdout;
      return code === 2 && stdout.includes('UNHEALTHY');
    });
    assert.match(
      shown,
      /: UNHEALTHY\n {2}! IPv4: rules are wrong: repair .*; changed by nft\[\d+\] \(.*\) \(for /,
    );
    const { repairs } = await ipv4();
    await node.eventually('more repairs', async () => (await ipv4()).repairs > repairs + 50, {
      everyMs: 100,
    });
    const seconds = (performance.now() - begun) / 1000;
    const share = ((cpuSeconds() - cpu) / seconds) * 100;
    const wrong = await node.metric('kubeproxy_ts_rules_wrong_seconds_total{ip_family="IPv4"');
    t.diagnostic(
      `${share.toFixed(0)} % of a core in ${seconds.toFixed(1)} s; wrong for ${wrong.toFixed(1)} s`,
    );
    assert.ok(wrong > 0);
    await fighter.stop();
    await node.eventually('services again', () => node.answers(target));
    await node.eventually('healthy', async () => (await page('healthz')).code === 200);
    const { state, problems } = await inspect<StatusReport>('status');
    assert.equal(state, 'degraded');
    assert.deepEqual(new Set(problems.map(({ kind }) => kind)), new Set(['RulesContested']));
    await node.eventually('the end', async () => (await ctl('status')).code === 0, { everyMs: 500 });
    assert.match(
      node.log,
      /"Another program still changes table kube-proxy; repaired".* times=\d+ repairs=\d+ /,
    );
    assert.match(node.log, /"No other program has changed table kube-proxy for 10 s"/);
  });

  test('a kube-proxy that changes the rules by running nft is named', async () => {
    const script = node.site.path('kube-proxy');
    writeFileSync(
      script,
      '#!/bin/sh\nwhile :; do nft flush chain ip kube-proxy nat-output; sleep 0.1; done\n',
    );
    chmodSync(script, 0o755);
    fighter = new Fighter(script);
    await node.eventually('the cause', async () =>
      /^nft\[\d+\] of kube-proxy\[\d+\]$/.test((await ipv4()).lastRepairCause?.by ?? ''),
    );
  });
});
