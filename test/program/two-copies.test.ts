/** Two copies of the real program in one network namespace, as with an old pod that has not ended yet. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { enterNamespace, hasProgram, labUnavailable } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { ctl } from '../ctl/ctl.ts';
import { SoleNode } from './sole-node.ts';

const skip = labUnavailable() ?? (hasProgram('nft', '--version') ? false : 'needs the program nft');
if (!skip) enterNamespace(import.meta.url);

const addresses = ['10.96.0.1', '10.96.0.2'] as const;
const health = 'http://127.0.0.1:20256';
const metrics = 'http://127.0.0.1:20249';

describe('two copies on one node', { skip }, () => {
  let node: SoleNode;

  before(async () => {
    node = await SoleNode.open();
    publish('first', addresses[0]);
    await node.start();
    await node.eventually('the first sync', () => node.answers(addresses[0]));
  });
  after(() => node.close());

  function publish(name: string, clusterIP: string): void {
    node.site.api.put('services', apiService(name, 80, { clusterIP }));
    node.site.api.put('endpointSlices', apiSlice(name, [SoleNode.address]));
  }

  const status = () => ctl('status', '--server', metrics);
  const repairs = () => node.metric('kubeproxy_ts_repairs_total');

  test('the second one writes nothing, names the first one, and takes over when that ends', async () => {
    const settings = { healthzBindAddress: '127.0.0.1:20256', metricsBindAddress: '127.0.0.1:20249' };
    const second = node.site.spawn(['--config', node.site.writeConfig(settings, 'second.yaml')]);
    await second.serves(`${health}/livez`);
    const reason = new RegExp(
      `another copy of kube-proxy-ts runs on this node \\(pid ${node.pid}, nftables mode, `,
    );
    await node.eventually('a reason', async () => {
      const response = await fetch(`${health}/healthz`);
      return response.status === 503 && reason.test(await response.text());
    });
    assert.equal((await fetch(`${health}/livez`)).status, 200);
    await second.serves(metrics);
    const { code, stdout } = await status();
    assert.deepEqual([code, reason.test(stdout)], [2, true], stdout);
    assert.match(
      second.stderr,
      /"Another copy of kube-proxy-ts runs in this network namespace; waiting until it ends"/,
    );
    for (const question of ['services', 'endpoints', 'diff', `explain node ${addresses[0]}:80`]) {
      const answer = await ctl(...question.split(' '), '--server', metrics);
      assert.deepEqual([answer.code, answer.stdout.includes(addresses[0])], [1, false], question);
      assert.match(answer.stderr + answer.stdout, reason, question);
    }
    publish('second', addresses[1]);
    await node.eventually('a new service', () => node.answers(addresses[1]));
    assert.equal(await repairs(), 0, 'they do not fight');
    assert.equal((await fetch('http://127.0.0.1:10256/healthz')).status, 200);

    await node.kill();
    await node.eventually('the take-over', async () => (await status()).code === 0, { everyMs: 100 });
    assert.equal((await fetch(`${health}/healthz`)).status, 200);
    node.site.api.delete('services', 'shop', 'second');
    await node.eventually('a service that is gone', async () => !(await node.answers(addresses[1])));
    assert.ok(await node.stillAnswers(addresses[0]));
  });
});
