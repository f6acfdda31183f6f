import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import type { EndpointList, ExplanationReport } from '../../src/inspect/api.ts';
import { complaint, ctl, printed } from './ctl.ts';

const shop = resolve(import.meta.dirname, '../../examples/shop');
const offline = `--manifests ${shop} --node node-1`;

describe('kube-proxyctl on manifests alone', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-ctl-'));
  after(() => rmSync(directory, { recursive: true }));

  it('lists services and endpoints', async () => {
    assert.match(await printed(`services ${offline}`), /^shop\/cart\/TCP +IPv4 +10\.96\.0\.20:8090 +30080 /m);
    assert.match(await printed(`services web ${offline}`), /3 of 3 endpoints used: ready/);
    const { items } = JSON.parse(await printed(`endpoints web -o json ${offline}`)) as EndpointList;
    assert.deepEqual(
      items.map(({ endpoint }) => endpoint),
      ['127.0.1.11:9376', '127.0.1.12:9376', '127.0.1.13:9376'],
    );
  });

  it('explains packets for the requested mode on a node that is another machine', async () => {
    const reasons = {
      nftables: 'node node-1 is another machine',
      iptables: 'node node-1 is another machine',
      ipvs: 'node node-1 is another machine',
      userspace: 'in userspace mode the process of kube-proxy serves connections',
    };
    for (const [mode, reason] of Object.entries(reasons)) {
      const text = await printed(`explain 192.0.2.9 192.0.2.1:30080 --proxy-mode ${mode} ${offline}`);
      assert.match(text, new RegExp(`; node node-1, ${mode} mode\n`));
      assert.match(text, /\nForwarded to one of 2 endpoints of shop\/cart\/TCP/);
      assert.match(text, new RegExp(`\nThe answer of the kernel is unknown: ${reason}`));
    }
  });

  it('says in every mode what becomes of annotations of a Service', async (t) => {
    const annotated = join(directory, 'annotated');
    cpSync(shop, annotated, { recursive: true });
    t.after(() => rmSync(annotated, { recursive: true }));
    const annotations = '{ kube-proxy-ts.dev/balance: hash-client, kube-proxy-ts.dev/reset-departed: tcp }';
    const manifest = readFileSync(join(shop, 'web.yaml'), 'utf8');
    writeFileSync(
      join(annotated, 'web.yaml'),
      manifest.replace('  name: web\n', `  annotations: ${annotations}\n$&`),
    );
    const notPossible = 'which is not possible in this proxy mode';
    const hashes = "hash-client: by the client's address, the same on every node";
    const resets = 'their connections get a TCP reset';
    const noReset = `no TCP reset: the Service asks for it, ${notPossible}`;
    const promises = {
      nftables: [hashes, resets, ", by a hash of the client's address: the same one on every node."],
      iptables: [
        `as usual: the Service asks for hash-client, ${notPossible}`,
        noReset,
        `No hash: the Service asks for hash-client, ${notPossible}; endpoints are chosen as usual.`,
      ],
      ipvs: [
        hashes.replace('the same on every node', 'with the scheduler mh'),
        noReset,
        ': the scheduler mh',
      ],
      userspace: [hashes, noReset, ', by a hash of'],
    };
    for (const [mode, [balance = '', departed = '', reason = '']] of Object.entries(promises)) {
      const planned = `--proxy-mode ${mode} --manifests ${annotated} --node node-1`;
      const details = await printed(`services web ${planned}`);
      assert.ok(details.includes(`  balance             ${balance}\n`), `${mode}: ${details}`);
      assert.ok(details.includes(`  departed endpoints  ${departed}\n`), `${mode}: ${details}`);
      const explanation = await printed(`explain 192.0.2.9 10.96.0.10:8080 ${planned}`);
      assert.ok(explanation.includes(reason), `${mode}: ${explanation}`);
      const unsupported = (await printed(`services ${planned}`)).match(/^Not possible .*$/gm) ?? [];
      assert.equal(unsupported.length, mode === 'nftables' ? 0 : mode === 'iptables' ? 2 : 1);
    }
  });

  it('takes the configuration into account', async () => {
    const config = join(directory, 'config.yaml');
    writeFileSync(
      config,
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: 10.244.0.0/16
ipvs: { scheduler: sh }
`,
    );
    const args = `explain 198.51.100.7 10.96.0.10:8080 -o json --config ${config} ${offline}`;
    const { mode, planned } = JSON.parse(await printed(args)) as ExplanationReport;
    assert.equal(mode, 'nftables');
    assert.ok(planned.reasons.some((reason) => reason.includes('not in the pod range 10.244.0.0/16')));
    assert.ok(!planned.reasons.some((reason) => reason.includes('scheduler')), 'that is for ipvs mode');
    writeFileSync(
      config,
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: magic\n',
    );
    assert.match(await complaint(args), /"magic"/);
    writeFileSync(
      config,
      'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\ndetectLocalMode: NodeCIDR\n',
    );
    const unknown = `services --manifests ${shop} --node nobody --config ${config}`;
    assert.match(await complaint(unknown), /node "nobody" has no spec\.podCIDRs/);
  });

  it('warns of manifests that are not in effect, and answers from the rest', async () => {
    writeFileSync(join(directory, 'bad.yaml'), 'kind: Service\n  bad: [');
    writeFileSync(
      join(directory, 'good.yaml'),
      `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: 10.96.0.1, ports: [{ port: 80 }] }
---
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec: { clusterIP: 10.96.0.2, ports: [{ port: 80000 }] }
`,
    );
    rmSync(join(directory, 'config.yaml'), { force: true });
    const { code, stdout, stderr } = await ctl('services', '--manifests', directory, '--node', 'n1');
    assert.equal(code, 0);
    assert.match(stdout, /^shop\/web\/TCP .* reject /m);
    assert.match(stderr, /^Warning: Manifest not in effect: .*bad\.yaml/m);
    assert.match(
      stderr,
      /good\.yaml:9:47: document 2: Service shop\/cart: spec\.ports\[0\]\.port: .* got 80000/,
    );
  });
});
