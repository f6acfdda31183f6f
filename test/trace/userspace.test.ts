import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { chain, TraceLab, traced, withFirewall } from './trace-lab.ts';

const skip = labUnavailable();
const namespace = skip === undefined ? enterNamespace(import.meta.url) : '';

describe('kube-proxyctl trace in userspace mode', { skip: skip ?? false, timeout: paced(300_000) }, () => {
  let lab: TraceLab;
  before(async () => {
    lab = await TraceLab.build(namespace, 'userspace');
  });
  after(() => lab?.close());

  it('follows a packet to the process of kube-proxy, and tells that it ends there', async () => {
    const text = await traced('--packets 1 shop/web', () => lab.connect('pod', '10.96.0.1'), 0);
    assert.match(
      text,
      /^Delivered to a process of this node at \S+, which answered: .* → shop\/web:http\/TCP /,
    );
    assert.match(text, /^In userspace mode kube-proxy decides outside of nf_tables/m);
  });

  it('names the rule of another program that drops a packet before kube-proxy gets it', async () => {
    const text = await withFirewall(chain('input', 'iifname "podveth0" tcp dport != 22 drop'), () =>
      traced('--packets 1 shop/web', () => lab.connect('pod', '10.96.0.1'), 2),
    );
    assert.match(text, /^Dropped by table inet firewall, chain input, rule handle \d+: /);
  });
});
