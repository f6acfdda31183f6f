import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { parse as parseYaml } from 'yaml';
import type { LiveReport } from '../../src/ctl/live/live.ts';
import type {
  DiffReport,
  EndpointList,
  ExplanationReport,
  ServiceList,
  StatusReport,
} from '../../src/inspect/api.ts';
import { enterNamespace, hasProgram, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice, podName } from '../cluster/objects.ts';
import { Fighter } from '../program/fighter.ts';
import { Site } from '../program/started.ts';
import { complaint, ctl, eventuallyReported, printed } from './ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const METRICS = 'http://127.0.0.1:10249';
const API = `${METRICS}/debug/kube-proxy/`;
const web = 'shop/web:http/TCP';

async function json<T>(args: string, code = 0): Promise<T> {
  return JSON.parse(await printed(`${args} -o json`, code)) as T;
}

/**
 * Deletes the frontends of the table again and again until a command reports a difference, between two repairs, that is
 * as wanted. Returns what the command prints.
 */
async function differing(args: string, isWanted: (stdout: string) => boolean = () => true): Promise<string> {
  const fighter = Fighter.nft('flush map ip kube-proxy frontends');
  let stdout = '';
  try {
    await eventuallyReported(`a difference in ${args}`, async () => {
      const outcome = await ctl(...args.split(' '));
      stdout = outcome.stdout;
      return outcome.code === 2 && isWanted(stdout);
    });
  } finally {
    await fighter.stop();
  }
  return stdout;
}

describe('kube-proxyctl and a proxy in nftables mode', { skip: skip ?? false }, () => {
  let site: Site;
  let config: string;

  before(async () => {
    sh('ip', 'addr', 'add', '192.0.2.1/32', 'dev', 'lo');
    site = await Site.open();
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5', '10.244.0.6']));
    site.api.put('services', apiService('lonely', 80, { clusterIP: '10.96.0.2' }));
    config = site.writeConfig({ metricsBindAddress: '0.0.0.0:10249', clusterCIDR: '10.244.0.0/16' });
    const proxy = await site.start(config);
    await proxy.serves(METRICS);
    await eventuallyReported('the first sync', async () => {
      const { families } = await json<StatusReport>('status');
      return families.every(({ syncs }) => syncs > 0);
    });
  });
  after(() => site.close());

  it('status shows mode, health and the last sync', async () => {
    const text = await printed('status');
    assert.match(
      text,
      /^kube-proxy v1\.37\.0 \(kube-proxy-ts .*\) in nftables mode on node node-a, up \S+: healthy\n\n/,
    );
    assert.match(text, /^IPv4 +192\.0\.2\.1 +2 +2 +\S+ ago +\S+ +(full|partial) /m);
    const report = await json<StatusReport>('status');
    assert.deepEqual([report.apiVersion, report.kind], ['inspect.kube-proxy-ts/v1', 'Status']);
    assert.equal(report.families[0]?.lastFailure, null);
  });

  it('status is degraded, with exit code 2, while a Service is not fully programmed', async () => {
    const { spec, ...rest } = apiService('odd', 80, { clusterIP: '10.96.0.3' });
    const odd = { ...rest, spec: { ...(spec as object), loadBalancerSourceRanges: ['bogus'] } };
    site.api.put('services', odd);
    await eventuallyReported('the problem', async () => (await ctl('status')).code === 2);
    const text = await printed('status', 2);
    assert.match(text, /: degraded\n {2}! 1 object not \(fully\) programmed; the reasons are below\n\n/);
    assert.match(text, /IPv4, invalid: Service shop\/odd: .*"bogus" is not a CIDR/);
    site.api.delete('services', 'shop', 'odd');
    await eventuallyReported('the end of the problem', async () => (await ctl('status')).code === 0);
    await eventuallyReported(
      'the sync that removes it',
      async () => !(await printed('services')).includes('shop/odd'),
    );
  });

  it('-o yaml says the same as -o json', async () => {
    for (const args of ['services', 'endpoints web', 'explain 10.244.0.9 10.96.0.1:80']) {
      assert.deepEqual(parseYaml(await printed(`${args} -o yaml`)), await json(args));
    }
  });

  it('services lists all Services, or one with its reasons', async () => {
    const table = await printed('services');
    assert.match(table, /^shop\/web:http\/TCP +IPv4 +10\.96\.0\.1:80 +- +- +2 endpoints +-$/m);
    assert.match(table, /^shop\/lonely:http\/TCP +IPv4 +10\.96\.0\.2:80 +- +- +reject +-$/m);
    const details = await printed('services shop/web');
    assert.match(details, /^shop\/web:http\/TCP \(IPv4\)\n/);
    assert.match(
      details,
      /from inside +2 endpoints: internalTrafficPolicy is Cluster; 2 of 2 endpoints used: ready/,
    );
    const { items } = await json<ServiceList>('services');
    assert.deepEqual(
      items.map((item) => item.service),
      ['shop/lonely:http/TCP', web],
    );
  });

  it('endpoints shows why each endpoint is used', async () => {
    const table = await printed('endpoints web');
    assert.match(
      table,
      /^shop\/web:http\/TCP +10\.244\.0\.5:8080 +web-7d4b9c5f6d-10-244-0-5 +za +ready +yes +- +used under policy Cluster$/m,
    );
    assert.equal(table.trimEnd().split('\n').length, 3);
    assert.match(await printed('endpoints lonely'), /^SERVICE PORT.*\n$/);
    assert.match(await complaint('endpoints nobody'), /no service port is called "nobody"/);
  });

  it('endpoints shows the new pod behind an address, which changes no rule', async () => {
    const rules = sh('nft', '--stateless', 'list', 'ruleset');
    const addresses = ['10.244.0.5', '10.244.0.6'];
    const { endpoints, ...slice } = apiSlice('web', addresses);
    const renamed = addresses.map((address, i) => ({
      ...(Array.isArray(endpoints) ? endpoints[i] : undefined),
      targetRef: { kind: 'Pod', namespace: 'shop', name: podName('next', address) },
    }));
    const podsOf = async () => (await json<EndpointList>('endpoints web')).items.map(({ pod }) => pod);
    try {
      site.api.put('endpointSlices', { ...slice, endpoints: renamed });
      await eventuallyReported('the new pods', async () => {
        assert.deepEqual(
          await podsOf(),
          addresses.map((address) => `shop/${podName('next', address)}`),
        );
        return true;
      });
      assert.equal(sh('nft', '--stateless', 'list', 'ruleset'), rules);
    } finally {
      site.api.put('endpointSlices', { ...slice, endpoints });
    }
    await eventuallyReported(
      'the old pods',
      async () => (await podsOf())[0]?.startsWith('shop/web-') ?? false,
    );
  });

  it('explain gets the same answer from policy and kernel for any packet', async () => {
    const report = await json<ExplanationReport>('explain 10.244.0.9 10.96.0.1:80');
    assert.deepEqual(report.kernel?.fate, report.planned.fate);
    assert.deepEqual(report.differences, []);
    const text = await printed('explain node 10.96.0.1:80');
    assert.match(text, /^TCP from 192\.0\.2\.1 to 10\.96\.0\.1:80, sent by the node itself/);
    assert.match(text, /10\.244\.0\.6:8080 +web-7d4b9c5f6d-10-244-0-6 +za +50\.0 % /);
    assert.match(text, /\nThe kernel agrees\n {2}\S/);
    assert.match(await printed('explain 198.51.100.7 10.96.0.2:80/tcp'), /\nRejected: .*The kernel agrees/s);
    assert.match(await printed('explain 198.51.100.7 203.0.113.1:80'), /\nIgnored: .*The kernel agrees/s);
    assert.match(await complaint('explain 198.51.100.7 web:81'), /no service port is called "web:81"/);
  });

  it('explain leaves out the table that counts traffic', async () => {
    await printed('top --count 1 --interval 10ms');
    assert.match(sh('nft', 'list', 'tables'), /table ip kube-proxy-observer-\d+\n/);
    assert.doesNotMatch(await printed('explain node 10.96.0.1:80'), /observer/);
  });

  it('explain exits with 2 and names the chain when another program drops the packet, for any source', async () => {
    sh('ip', 'link', 'add', 'pods', 'type', 'veth', 'peer', 'name', 'pods-peer');
    sh('ip', 'link', 'set', 'pods', 'up');
    sh('ip', 'route', 'add', '10.244.0.0/16', 'dev', 'pods');
    sh('nft', 'add table inet firewall');
    try {
      sh('nft', 'add chain inet firewall forward { type filter hook forward priority 0; policy drop; }');
      const text = await printed('explain 10.244.0.9 10.96.0.1:80', 2);
      assert.match(
        text,
        /WARNING: ANOTHER PROGRAM STOPS IT: table inet firewall, chain forward: policy drop\.\n/,
      );
      assert.match(text, /\nThe kernel agrees\n.*\nLooked at: table ip kube-proxy\.\n/s);
      const { differences, otherRules } = await json<ExplanationReport>('explain 10.244.0.9 10.96.0.1:80', 2);
      assert.deepEqual(differences, []);
      assert.deepEqual(otherRules?.obstacles[0]?.causes, [
        { action: 'drop', chain: 'forward', handle: null, comment: null },
      ]);
      assert.match(await printed('explain node 10.96.0.1:80'), /No other nf_tables chain is on the way\n/);
      sh('nft', 'add rule inet firewall forward ip daddr 10.244.0.0/24 accept');
      assert.match(await printed('explain 10.244.0.9 10.96.0.1:80'), /chain forward .*: lets it pass\n/);
      sh('nft', 'insert rule inet firewall forward meta skuid 7 drop comment "not ours"');
      assert.match(
        await printed('explain 10.244.0.9 10.96.0.1:80'),
        /\nAnother program may stop it: table inet firewall, chain forward: drop by the rule with handle \d+ \("not ours"\); 1 rule could not be evaluated\.\n/,
      );
      if (!hasProgram('iptables-legacy', '--version')) return;
      // Listing the table creates it.
      sh('iptables-legacy', '-S');
      assert.match(
        await printed('explain 10.244.0.9 10.96.0.1:80'),
        /\nNot looked at: other rules of legacy iptables \(tables filter\)\.\n$/,
      );
    } finally {
      sh('nft', 'delete table inet firewall');
      sh('ip', 'link', 'delete', 'pods');
    }
  });

  it('explain --live follows a packet that it sends, and leaves nothing behind', async () => {
    sh('ip', 'route', 'add', '10.96.0.0/16', 'dev', 'lo');
    sh('ip', 'route', 'add', '10.244.0.0/16', 'dev', 'lo');
    const text = await printed('explain --live node 10.96.0.1:80');
    assert.match(text, /^Sent: TCP from 192\.0\.2\.1:\d+ to 10\.96\.0\.1:80, and /m);
    assert.match(text, /^The packet went to 10\.244\.0\.[56]:8080, as decided\.\n {2}ip kube-proxy \S/m);
    const refused = await json<{ live: LiveReport }>('explain --live node 10.96.0.2:80');
    assert.deepEqual([refused.live.isDropped, refused.live.differences], [true, []]);
    const datagram = await json<{ live: LiveReport }>('explain --live node 10.96.0.9:53/udp');
    assert.deepEqual([datagram.live.to, datagram.live.outcome], ['10.96.0.9:53', 'sent']);
    assert.match(await complaint('explain --live 198.51.100.7 10.96.0.1:80'), /SRC must be "node"/);
    assert.doesNotMatch(sh('nft', 'list', 'tables'), /trace/);
  });

  it('diff finds nothing while no other program changes the rules', async () => {
    assert.equal(await printed('diff'), 'IPv4: no difference\n\nIPv6: no difference\n');
  });

  it('explain and diff report a change of the kernel, and status its repair', async () => {
    sh('ip', 'addr', 'add', '192.0.2.99/32', 'dev', 'lo');
    await eventuallyReported('the new address', async () => (await ctl('diff')).code === 0);
    const { families: before } = await json<StatusReport>('status');
    assert.ok(before.every(({ repairs }) => repairs === 0));
    assert.match(await differing('explain node 10.96.0.1:80'), /WARNING: THE KERNEL DISAGREES\n {2}! /);
    const { families, items } = JSON.parse(
      await differing('diff web -o json', (stdout) => !stdout.includes('"settled": false')),
    ) as DiffReport;
    assert.deepEqual(families[0], { family: 'IPv4', error: null, settled: true, differences: items.length });
    assert.ok(items.every((item) => item.service === web && item.found === undefined));
    const isRepaired = async () => (await ctl('diff')).code === 0;
    await eventuallyReported('the repair', isRepaired);
    const isOver = async () => (await ctl('status')).code === 0;
    await eventuallyReported('the end of the fight', isOver, { everyMs: 1_000 });
    assert.ok((await json<StatusReport>('status')).families.some(({ repairs }) => repairs > 0));
    assert.match(await printed('status'), /nft\[\d+\] had changed our rules \(element deleted: \d+\)/);
  });

  it('finds the server by the configuration file, and reports when it does not answer', async () => {
    assert.match(await printed(`status --config ${config}`), /healthy/);
    assert.match(
      await complaint('status --server http://127.0.0.1:1'),
      /cannot ask kube-proxy at .*ECONNREFUSED/,
    );
    assert.match(await complaint('status --server http://127.0.0.1:10256'), /has no \/debug\/kube-proxy\//);
  });

  it('the inspection API refuses writes', async () => {
    const response = await fetch(`${API}status`, { method: 'POST' });
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'GET, HEAD']);
    assert.equal((await fetch(`${API}services`, { method: 'HEAD' })).status, 200);
  });

  it('the inspection API refuses other host names than localhost, and unknown parameters', async () => {
    // fetch() does not let its caller choose the Host header.
    const request = get(`${API}status`, { headers: { host: 'evil.example' }, agent: false });
    const [foreign] = (await once(request, 'response')) as [IncomingMessage];
    assert.equal(foreign.statusCode, 403);
    assert.match(await text(foreign), /does not answer requests for host "evil\.example"/);
    const unknown = await fetch(`${API}services?nmae=web`);
    assert.deepEqual(
      [unknown.status, await unknown.text()],
      [400, 'unknown parameter "nmae"; services has name, namespace\n'],
    );
  });

  it('the inspection API answers only loopback clients, unless --inspection-from admits others', async () => {
    const away = 'status --server http://192.0.2.1:10249';
    assert.match(await complaint(away), /answers 403: .* is not open to 192\.0\.2\.1/);
    assert.equal((await fetch('http://192.0.2.1:10249/healthz')).status, 200);
    await site.stopAll();
    const proxy = await site.start(config, ['--inspection-from=192.0.2.0/24']);
    await proxy.serves(METRICS);
    await eventuallyReported('an answer', async () => (await ctl(...away.split(' '))).code === 0);
  });
});
