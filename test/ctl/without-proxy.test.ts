import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { ExplanationReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { apiNode, apiService, apiSlice } from '../cluster/objects.ts';
import { kubeProxyctl, run } from '../program/run.ts';
import { Site } from '../program/started.ts';
import { complaint, ctl, eventuallyReported, printed } from './ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const NOBODY = '65534';
const toWeb = 'explain node 10.96.0.1:80';

for (const mode of ['nftables', 'iptables']) {
  describe(`kube-proxyctl after the proxy in ${mode} mode has died`, { skip: skip ?? false }, () => {
    let site: Site;
    let withConfig: string;
    let withKubeconfig: string;
    let withManifests: string;

    before(async () => {
      sh('ip', 'address', 'replace', '192.0.2.1/32', 'dev', 'lo');
      site = await Site.open();
      const [service, slice, node] = [apiService('web'), apiSlice('web', ['10.244.0.5']), apiNode('node-a')];
      site.api.put('services', service);
      site.api.put('endpointSlices', slice);
      const manifests = [
        { apiVersion: 'v1', kind: 'Service', ...service },
        { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...slice },
        { apiVersion: 'v1', kind: 'Node', ...node },
      ];
      writeFileSync(site.path('manifests.yaml'), manifests.map((one) => JSON.stringify(one)).join('\n---\n'));
      const config = site.writeConfig({ mode });
      withConfig = `--without-proxy --config ${config}`;
      withKubeconfig = `--kubeconfig ${site.path('kubeconfig')} --node node-a --proxy-mode ${mode}`;
      withManifests = `--manifests ${site.path('manifests.yaml')} --node node-a --proxy-mode ${mode}`;
      await site.start(config);
      await eventuallyReported('the first sync', async () => (await ctl('diff')).code === 0);
      await site.stopAll();
    });
    after(async () => {
      await site.close();
      sh('nft', 'flush', 'ruleset');
    });

    it('the error of a command that asked it shows the way', async () => {
      assert.match(await complaint('diff'), /ECONNREFUSED.*--without-proxy/);
      assert.doesNotMatch(await complaint('status'), /--without-proxy/);
    });

    it('explain and diff compare the kernel with the configuration, an API server or manifests', async () => {
      const rules = sh('nft', '--stateless', 'list', 'ruleset');
      const requests = site.api.requests.length;
      for (const source of [withConfig, withKubeconfig, withManifests]) {
        assert.match(await printed(`diff ${source}`), /^IPv4: no difference$/m);
        assert.match(await printed(`${toWeb} ${source}`), /to 10\.244\.0\.5:8080 .*The kernel agrees/s);
        assert.match(await printed(`services ${source}`), /^shop\/web:http\/TCP /m);
        assert.match(await printed(`endpoints web ${source}`), /10\.244\.0\.5:8080 +web-\S+ +za +ready /);
      }
      assert.equal(sh('nft', '--stateless', 'list', 'ruleset'), rules);
      assert.ok(site.api.requests.slice(requests).every(({ method }) => method === 'GET'));
    });

    it('they exit with 2 when the cluster has changed meanwhile', async () => {
      site.api.put('endpointSlices', apiSlice('web', ['10.244.0.6']));
      assert.match(await printed(`diff ${withConfig}`, 2), /10\.244\.0\.6/);
      const explained = await printed(`${toWeb} ${withKubeconfig} -o json`, 2);
      const { kernel, differences } = JSON.parse(explained) as ExplanationReport;
      assert.match(JSON.stringify(kernel), /10\.244\.0\.5:8080/);
      assert.match(differences.join('\n'), /10\.244\.0\.6:8080 should get 100 %/);
      assert.match(await printed(`diff ${withManifests}`), /^IPv4: no difference$/m);
    });

    it('they exit with 2 when another program has removed the rules', async () => {
      sh('nft', 'flush', 'ruleset');
      assert.match(await printed(`diff web ${withManifests}`, 2), /^IPv4: \d+ differences?$/m);
      assert.match(await printed(`${toWeb} ${withManifests}`, 2), /The kernel says: Ignored/);
    });

    it('they say so when they may not read the kernel', async () => {
      chmodSync(site.directory, 0o755);
      const unprivileged = (args: string) =>
        run('setpriv', ['--reuid', NOBODY, '--clear-groups', kubeProxyctl, ...args.split(' ')]);
      const explained = await unprivileged(`${toWeb} ${withManifests}`);
      assert.equal(explained.code, 0, explained.stderr);
      assert.match(explained.stdout, /The answer of the kernel is unknown: .*CAP_NET_ADMIN.*run .* as root/);
      const compared = await unprivileged(`diff ${withManifests}`);
      assert.equal(compared.code, 1, compared.stderr);
      assert.match(compared.stdout, /^IPv4: cannot be compared: .*CAP_NET_ADMIN/m);
    });

    it('they end when the API server does not answer in time', async () => {
      const cluster = { name: 'gone', cluster: { server: 'http://127.0.0.1:1' } };
      const context = { name: 'gone', context: { cluster: 'gone', user: '' } };
      const kubeconfig = { 'current-context': 'gone', contexts: [context], clusters: [cluster] };
      writeFileSync(site.path('gone'), JSON.stringify(kubeconfig));
      const text = await complaint(
        `diff --kubeconfig ${site.path('gone')} --proxy-mode ${mode} --timeout 500ms`,
      );
      assert.match(
        text,
        /ECONNREFUSED 127\.0\.0\.1:1.*an answer of the API server did not come within 0\.5 s/s,
      );
    });

    it('they do not compare the kernel with the plans of another machine', async () => {
      const elsewhere = apiNode('node-b');
      site.api.put('nodes', {
        ...elsewhere,
        status: { addresses: [{ type: 'InternalIP', address: '192.0.2.77' }] },
      });
      const other = withKubeconfig.replace('node-a', 'node-b');
      const reason = /node node-b is another machine: none of its addresses \(192\.0\.2\.77\) is here/;
      assert.match(await printed(`${toWeb} ${other}`), reason);
      assert.match(await printed(`diff ${other}`, 1), reason);
    });
  });
}
