import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable, sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { complaint, ctl, printed } from '../ctl/ctl.ts';
import { eventually } from '../eventually.ts';
import { flavourUnavailable } from '../iptables/flavours.ts';
import { kubeProxyctl } from '../program/run.ts';
import {
  balancer,
  chain,
  endpoint,
  isTracing,
  node,
  nodePort,
  patience,
  podDevice,
  story,
  stray,
  TraceLab,
  traced,
  v6,
  withFirewall,
} from './trace-lab.ts';

const skip = labUnavailable();
const namespace = skip === undefined ? enterNamespace(import.meta.url) : '';

describe('kube-proxyctl trace in nftables mode', { skip: skip ?? false, timeout: paced(600_000) }, () => {
  let lab: TraceLab;
  before(async () => {
    lab = await TraceLab.build(namespace, 'nftables');
  });
  after(() => lab?.close());

  it('tells that a connection was delivered and answered, with interfaces and endpoint', async () => {
    const told = await story('shop/web', () => lab.connect('pod', '10.96.0.1'), 0);
    assert.deepEqual(
      [told.outcome, told.entered, told.left, told.service, told.destination, told.endpoint],
      ['answered', podDevice, 'veth1', 'shop/web:http/TCP', '10.96.0.1:80', `${endpoint}:8080`],
    );
    assert.match(
      told.headline,
      /^Delivered to 10\.244\.0\.5:8080, which answered: 10\.244\.0\.9:\d+ → shop\/web/,
    );
    assert.ok(told.steps.some((step) => step.startsWith('ip kube-proxy ')));
  });

  it('names the rule of another program that drops forwarded packets', async () => {
    const told = await withFirewall(chain('forward', 'tcp dport 8080 drop comment "no pods"'), () =>
      story('shop/web', () => lab.connect('pod', '10.96.0.1')),
    );
    assert.match(
      told.headline,
      /^Dropped by table inet firewall, chain forward, rule handle \d+ \("no pods"\): 10\.244\.0\.9:\d+ → shop\/web:http\/TCP 10\.96\.0\.1:80 → 10\.244\.0\.5:8080$/,
    );
    assert.deepEqual([told.culprit?.hook, told.culprit?.ours, told.left], ['forward', false, null]);
  });

  it('names the rule of another program that rejects packets of the node', async () => {
    const told = await withFirewall(chain('output', 'ip daddr 10.244.0.5 reject comment "stay"'), () =>
      story('node shop/web', () => lab.connect('node', '10.96.0.1')),
    );
    assert.match(
      told.headline,
      /^Rejected by table inet firewall, chain output, rule handle \d+ \("stay"\): 192/,
    );
    assert.deepEqual([told.entered, told.endpoint], [null, `${endpoint}:8080`]);
  });

  it('gives the reason of kube-proxy for a client outside of the source ranges', async () => {
    const told = await story('shop/ranged', () => lab.connect('outside', balancer('10.96.0.2')));
    assert.match(
      told.headline,
      /^Dropped by kube-proxy: Source 203\.0\.113\.5 is in none of the admitted ranges \(198\.51\.100\.0\/24\) \(table ip kube-proxy, /,
    );
  });

  it('gives the reason of kube-proxy for policy Local without an endpoint on this node', async () => {
    const told = await story('shop/local', () => lab.connect('outside', balancer('10.96.0.3')));
    assert.match(
      told.headline,
      /^Dropped by kube-proxy: .*externalTrafficPolicy is Local.* \(table ip kube-proxy, /,
    );
  });

  it('tells that an endpoint does not answer', async () => {
    const told = await story('shop/mute', () => lab.connect('pod', '10.96.0.4'));
    assert.match(told.headline, /^No answer from 10\.244\.0\.6:8080: 10\.244\.0\.9:\d+ → shop\/mute/);
    assert.equal(told.left, 'veth2');
  });

  it('tells that an endpoint refuses', async () => {
    await lab.host('A').stop(8080);
    try {
      const told = await story('shop/web', () => lab.connect('pod', '10.96.0.1'));
      assert.match(told.headline, /^Refused by 10\.244\.0\.5:8080: /);
    } finally {
      await lab.host('A').serve(8080);
    }
  });

  it('names the reverse path filter where the trace just ends', async () => {
    const file = `/proc/sys/net/ipv4/conf/${podDevice}/rp_filter`;
    writeFileSync(file, '1');
    try {
      const told = await story(`${stray} shop/web`, () => lab.connect('pod', '10.96.0.1', stray));
      assert.match(
        told.headline,
        /^Lost between prerouting and forward or input, where the route is looked up, probably by the reverse path filter \(net\.ipv4\.conf\.podveth0\.rp_filter is 1\): .* leads to veth3: 10\.99\.0\.1:/,
      );
    } finally {
      writeFileSync(file, '0');
    }
  });

  it('names the missing route where the trace just ends', async () => {
    const told = await story('shop/gone', () => lab.connect('pod', '10.96.0.5'));
    assert.match(
      told.headline,
      /^Lost between .*, probably by a missing route: none leads to 10\.255\.0\.1: /,
    );
    const own = await story('node shop/gone', () => lab.connect('node', '10.96.0.5'));
    assert.match(
      own.headline,
      /^Lost .* output.*, probably by a missing route: none leads to 10\.255\.0\.1: /,
    );
  });

  it('follows a packet of the node to a process of the node', async () => {
    const told = await story('node shop/host', () => lab.connect('node', '10.96.0.6'), 0);
    assert.match(
      told.headline,
      /^Delivered to a process of this node at 192\.0\.2\.1:8080, which answered: /,
    );
    assert.deepEqual([told.entered, told.endpoint], [null, `${node}:8080`]);
    assert.deepEqual(told.passed.map(({ hook }) => hook).slice(-2), ['prerouting', 'input']);
  });

  it('names the culprit in IPv6', async () => {
    const told = await withFirewall(chain('forward', 'ip6 daddr fd00:244::5 drop'), () =>
      story('shop/six', () => lab.connect('pod', v6.clusterIP)),
    );
    assert.match(
      told.headline,
      /^Dropped by table inet firewall, chain forward, rule handle \d+: \[fd00:244::9\]:\d+ → shop\/six:http\/TCP \[fd00:96::1\]:80 → \[fd00:244::5\]:8080$/,
    );
  });

  it('a comment with control characters does no harm on a terminal', async () => {
    const comment = '\u001b[2J\u009b31m\u202eevil';
    const text = await withFirewall(chain('forward', `tcp dport 8080 drop comment "${comment}"`), () =>
      traced('--packets 1 shop/web', () => lab.connect('pod', '10.96.0.1'), 2),
    );
    assert.match(
      text,
      /^Dropped by table inet firewall, chain forward, rule handle \d+ \("\\u\{1b\}\[2J\\u\{9b\}31m/,
    );
    assert.doesNotMatch(text.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u);
  });

  it('follows no more connections than the limit, and tells equal ones together', async () => {
    const text = await traced(
      '--packets 3 shop/web',
      async () => {
        for (let i = 0; i < 20; i++) await lab.connect('pod', '10.96.0.1');
      },
      0,
    );
    assert.match(
      text,
      /^3 connections: Delivered to 10\.244\.0\.5:8080, which answered\n( {2}10\.244\.0\.9:\d+ → .*\n){3}/,
    );
    assert.match(text, /^Followed 3 connections in .*, as many as --packets allows\.$/m);
  });

  it('ends when time is over, and tells that nothing came', async () => {
    assert.match(
      await printed('trace --for 200ms shop/web'),
      /^No first packet of a connection of shop\/web came to this node in /,
    );
    assert.ok(!isTracing());
  });

  it('follows packets to a node port', async () => {
    const ask = () => lab.host('outside').ask({ address: node, port: nodePort });
    const told = await story('shop/ported', ask, 0);
    assert.match(
      told.headline,
      /^Delivered to .*: 203\.0\.113\.5:\d+ → shop\/ported:http\/TCP 192\.0\.2\.1:30080 → 10\.244\.0\.5:8080$/,
    );
    assert.match(told.masqueradedAs ?? '', /^192\.0\.2\.1:\d+$/);
  });

  it('follows datagrams between addresses', async () => {
    const ask = () => lab.host('pod').ask({ address: endpoint, port: 5353, transport: 'udp' });
    const told = await story('10.244.0.0/16 10.244.0.5:5353/UDP', ask, 0);
    assert.deepEqual([told.protocol, told.service, told.endpoint], ['UDP', null, null]);
    assert.match(
      told.headline,
      /^Delivered to 10\.244\.0\.5:5353, which answered: 10\.244\.0\.9:\d+ → 10\.244\.0\.5:5353$/,
    );
  });

  it('Ctrl-C ends it with what was seen, and kill -9 leaves no table behind', async () => {
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const child = spawn(kubeProxyctl, ['trace', '--for', patience, 'shop/web'], {
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      let text = '';
      child.stdout.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      await eventually('a trace', isTracing);
      await lab.connect('pod', '10.96.0.1');
      child.kill(signal);
      await once(child, 'close');
      await eventually('the end of the table', () => !isTracing());
      if (signal === 'SIGINT') assert.match(text, /^Delivered to 10\.244\.0\.5:8080, which answered: /);
    }
  });

  it('refuses what makes no sense with one clear line', async () => {
    assert.match(await complaint('trace shop/nobody'), /no service port is called "shop\/nobody"/);
    assert.match(
      await complaint('trace somewhere 10.96.0.1:80'),
      /SRC "somewhere" is not an address, a CIDR or "node"/,
    );
    assert.match(await complaint('trace fd00::1 10.96.0.1:80'), /are of different families/);
    assert.match(await complaint('trace --packets 0 shop/web'), /is not between 1 and 1000/);
    assert.match(
      await complaint('trace -N node-a shop/web'),
      /trace runs on the node itself, not with -N: kubectl /,
    );
  });

  it('names legacy iptables, whose rules a trace does not show, where it drops a packet', async (t) => {
    if (flavourUnavailable('legacy') !== undefined) return t.skip('needs the program iptables-legacy');
    sh('iptables-legacy -A FORWARD -p tcp --dport 8080 -j DROP');
    try {
      const text = await traced('--packets 1 shop/web', () => lab.connect('pod', '10.96.0.1'), 2);
      assert.match(
        text,
        /^Lost at hook forward, probably by legacy iptables, which has rules in tables filter: 10\.244\./,
      );
      assert.match(text, /^Rules of legacy iptables \(tables filter\) are not shown\.$/m);
    } finally {
      sh('iptables-legacy -F FORWARD');
    }
  });

  it('leaves the rules of kube-proxy alone', async () => {
    const { families } = JSON.parse((await ctl('status', '-o', 'json')).stdout) as StatusReport;
    assert.deepEqual(
      families.map(({ repairs }) => repairs),
      families.map(() => 0),
    );
  });

  it('follows packets between addresses while kube-proxy is down', async () => {
    await lab.site.stopAll();
    const told = await withFirewall(chain('forward', 'drop'), () =>
      story('10.244.0.0/16 10.96.0.1:80', () => lab.connect('pod', '10.96.0.1')),
    );
    assert.match(
      told.headline,
      /^Dropped by table inet firewall, .*: 10\.244\.0\.9:\d+ → 10\.96\.0\.1:80 → 10\.244\.0\.5:8080$/,
    );
    assert.match(await complaint('trace shop/web'), /cannot ask kube-proxy at /);
  });

  it('blames the kubelet for its chain while kube-proxy is down', async () => {
    await lab.site.stopAll();
    const rules = `chain KUBE-FIREWALL { drop comment "marked"; }\n${chain('forward', 'jump KUBE-FIREWALL')}`;
    const told = await withFirewall(rules, () =>
      story('10.244.0.0/16 10.96.0.1:80', () => lab.connect('pod', '10.96.0.1')),
    );
    assert.match(
      told.headline,
      /^Dropped by the kubelet \(table inet firewall, chain KUBE-FIREWALL, rule handle \d+ \("marked"\)\): /,
    );
    assert.equal(told.culprit?.ours, false);
  });
});
