/** Repair of rules with 10,000 Services. Times are printed for people; the tests assert none. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { Fighter } from './fighter.ts';
import { SoleNode } from './sole-node.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);

const SERVICES = 10_000;
const ENDPOINTS = 3;
/** The service to which the test connects. */
const watched = SERVICES - 1;
const FULL_SYNCS = 'kubeproxy_sync_full_proxy_rules_duration_seconds_count{ip_family="IPv4"';
const LAST_SYNC = 'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"';
const LAST_QUEUED = 'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"';

const clusterIPOf = (i: number): string => `10.96.${i >> 8}.${i & 255}`;
const target = clusterIPOf(watched);

describe('nftables mode with 10,000 Services', { skip }, () => {
  let node: SoleNode;

  before(async () => {
    node = await SoleNode.open();
    const { api } = node.site;
    for (let i = 0; i < SERVICES; i++) {
      const name = `service-${i}`;
      const elsewhere = Array.from({ length: ENDPOINTS }, (_, e) => `10.${128 + e}.${i >> 8}.${i & 255}`);
      api.put('services', apiService(name, 80, { clusterIP: clusterIPOf(i) }));
      api.put('endpointSlices', apiSlice(name, i === watched ? [SoleNode.address] : elsewhere));
    }
  });
  afterEach(() => node.stop());
  after(() => node.close());

  async function start(): Promise<void> {
    await node.start();
    await node.eventually(
      'the first sync',
      async () => (await node.metric(FULL_SYNCS)) > 0 && (await isQuiet()),
    );
    assert.ok(await node.stillAnswers(target));
  }

  /** Whether no sync is pending. */
  async function isQuiet(): Promise<boolean> {
    return (await node.metric(LAST_QUEUED)) <= (await node.metric(LAST_SYNC));
  }

  /** Changes the table, as another program would, so that traffic stops, and waits until it flows again. */
  async function repaired(t: TestContext, what: string, ...command: readonly string[]): Promise<void> {
    const begun = performance.now();
    await node.nft(...command);
    const changed = performance.now();
    await node.eventually(`${what} undone`, () => node.answers(target));
    const flows = performance.now();
    await node.eventually('quiet', isQuiet);
    t.diagnostic(
      `${what}: traffic again after ${Math.round(flows - changed)} ms ` +
        `(the command took ${Math.round(changed - begun)} ms)`,
    );
  }

  async function ruleHandle(chain: string): Promise<string> {
    const listing = await node.nft('-a', 'list', 'chain', 'ip', 'kube-proxy', chain);
    return /@frontends.*# handle (\d+)/.exec(listing)?.[1] ?? assert.fail(listing);
  }

  test('traffic flows again after a flush, and after elements and a rule are deleted', async (t) => {
    await start();
    await repaired(t, 'flush ruleset', 'flush', 'ruleset');
    await repaired(t, 'element deleted', `delete element ip kube-proxy frontends { ${target} . tcp . 80 }`);
    await repaired(t, 'handlers deleted', 'flush', 'map', 'ip', 'kube-proxy', 'handlers');
    await repaired(
      t,
      'rule deleted',
      `delete rule ip kube-proxy nat-output handle ${await ruleHandle('nat-output')}`,
    );
    assert.match(node.log, /another program.*repairing.*by="nft\[\d+\]"/i);
  });

  test('traffic flows again after the table is deleted', async (t) => {
    await start();
    await repaired(t, 'table deleted', 'delete', 'table', 'ip', 'kube-proxy');
  });

  test('a program that keeps changing the table is reported once, and repairs take a limited share of a core', async (t) => {
    await start();
    const address = `cluster-addresses { ${target} }`;
    const repairs = () => node.metric('kubeproxy_ts_repairs_total{ip_family="IPv4"');
    const cpu = () => node.metric('process_cpu_seconds_total');
    const reports = () => node.log.match(/Another program keeps changing /g)?.length ?? 0;
    const [cpuBefore, begun] = [await cpu(), performance.now()];
    const fighter = Fighter.nft(`delete element ip kube-proxy ${address}`);
    await node.eventually('some repairs', async () => (await repairs()) > 10, { everyMs: 100 });
    const seconds = (performance.now() - begun) / 1000;
    const share = Math.round((((await cpu()) - cpuBefore) / seconds) * 100);
    t.diagnostic(`${await repairs()} repairs in ${seconds.toFixed(1)} s took ${share} % of a core`);
    await fighter.stop();
    assert.equal(reports(), 1);
    const isRepaired = () =>
      node.nft(`get element ip kube-proxy ${address}`).then(
        () => true,
        () => false,
      );
    await node.eventually('peace', isRepaired);
  });
});
