import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { flavourUnavailable, useFlavour } from '../iptables/flavours.ts';
import { balancer, chain, story, TraceLab, withFirewall } from './trace-lab.ts';

const skip = labUnavailable() ?? flavourUnavailable('nft');
const namespace = skip === undefined ? enterNamespace(import.meta.url) : '';
if (skip === undefined) useFlavour('nft');

describe('kube-proxyctl trace in iptables mode', { skip: skip ?? false, timeout: paced(300_000) }, () => {
  let lab: TraceLab;
  before(async () => {
    lab = await TraceLab.build(namespace, 'iptables');
  });
  after(() => lab?.close());

  it('shows the chains of kube-proxy and the endpoint', async () => {
    const told = await story('shop/web', () => lab.connect('pod', '10.96.0.1'), 0);
    assert.match(
      told.headline,
      /^Delivered to 10\.244\.0\.5:8080, which answered: .* → shop\/web:http\/TCP /,
    );
    assert.ok(told.steps.some((step) => /^ip nat KUBE-SVC-/.test(step)));
  });

  it('names the rule of another program that drops forwarded packets', async () => {
    const told = await withFirewall(chain('forward', 'tcp dport 8080 drop comment "no pods"'), () =>
      story('shop/web', () => lab.connect('pod', '10.96.0.1')),
    );
    assert.match(
      told.headline,
      /^Dropped by table inet firewall, chain forward, rule handle \d+ \("no pods"\): /,
    );
  });

  it('gives the reason of kube-proxy for a client outside of the source ranges', async () => {
    const told = await story('shop/ranged', () => lab.connect('outside', balancer('10.96.0.2')));
    assert.match(
      told.headline,
      /^Dropped by kube-proxy: Source 203\.0\.113\.5 is in none of the admitted ranges .* \(table ip filter, chain KUBE-PROXY-FIREWALL, rule handle \d+ \("shop\/ranged:http/,
    );
  });
});
