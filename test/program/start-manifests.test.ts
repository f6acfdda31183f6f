import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { enterNamespace, labUnavailable, sh } from '../cluster/lab/namespace.ts';
import { Installation, NpmStart } from './npm-start.ts';
import { ordinaryManifests } from './ordinary-manifests.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const ROOT = 0;
const NOBODY = 65_534;

describe('npm start -- PATH', { skip: skip ?? false }, () => {
  let installation: Installation;
  const started: NpmStart[] = [];

  function start(uid: number, ...args: readonly string[]): NpmStart {
    const demonstration = new NpmStart(installation, uid, [], args);
    started.push(demonstration);
    return demonstration;
  }

  /** A folder with one file of these manifests, which every user can read. */
  function folderOf(name: string, text: string): string {
    const path = join(dirname(installation.project), name, 'cluster.json');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    chmodSync(dirname(path), 0o755);
    return dirname(path);
  }

  /** Runs the command that the demonstration prints for a second terminal. */
  async function askFromSecondTerminal(demonstration: NpmStart): Promise<string> {
    await demonstration.shows(/second terminal:\n +\S.*kube-proxyctl.* status/);
    const [, command = ''] = /second terminal:\n +(\S.*)\n/.exec(demonstration.output) ?? [];
    return sh(command);
  }

  before(() => {
    installation = new Installation();
  });
  afterEach(() => {
    for (const demonstration of started.splice(0)) demonstration.kill();
  });
  after(() => installation.remove());

  it('as root, has stand-ins for endpoints at any address, for Services of every kind', async () => {
    const folder = folderOf('town', ordinaryManifests());
    const demonstration = start(ROOT, folder);
    const shows = (line: RegExp) => demonstration.shows(new RegExp(`^${line.source}$`, 'm'));
    await shows(/front, cluster IP +10\.96\.1\.1:80 +10\.244\.1\.5 ×\d {2}10\.244\.2\.7 ×\d/);
    await shows(/front, cluster IP +\[fd00:96::1\]:80 +fd00:10:244:1::5 ×6/);
    await shows(/front, node port +192\.0\.2\.1:30180 +10\.244\.[12]\.[57] ×.*/);
    await shows(/front, node port +\[2001:db8::1\]:30180 +fd00:10:244:1::5 ×6/);
    await shows(/dns, cluster IP +10\.96\.1\.2:53\/UDP +10\.244\.1\.9 ×6/);
    await shows(/entry, external IP +198\.51\.100\.9:443 +10\.244\.1\.5 ×6/);
    await shows(/entry, load balancer +203\.0\.113\.10:443 +10\.244\.1\.5 ×6/);
    await shows(/empty, cluster IP +10\.96\.1\.4:80 +ECONNREFUSED ×6 {2}\(no endpoints\)/);
    await shows(/signal, cluster IP +10\.96\.1\.5:2905\/SCTP +not asked: SCTP/);
    assert.match(
      await askFromSecondTerminal(demonstration),
      / in nftables mode on node worker-1, .*: healthy/,
    );

    const file = join(folder, 'cluster.json');
    const position = demonstration.output.length;
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('10.244.1.9', '10.244.7.9'));
    await demonstration.shows(/dns, cluster IP +10\.96\.1\.2:53\/UDP +10\.244\.7\.9 ×6/, position);
    demonstration.signal('SIGINT', 'all');
    assert.equal(await demonstration.ended(), 0);
  });

  it('as another user, serves what it can and says what needs root', async () => {
    const folder = folderOf('mixed', ordinaryManifests());
    const web = join(installation.project, 'examples/shop/web.yaml');
    writeFileSync(join(folder, 'web.yaml'), readFileSync(web, 'utf8'));
    // Another kube-proxy runs on this machine.
    const other = createServer().listen(10_249, '127.0.0.1');
    try {
      const demonstration = start(NOBODY, folder);
      await demonstration.shows(/runs in userspace mode/);
      await demonstration.shows(/10\.244\.1\.5.*have no stand-in: without root, only loopback addresses/);
      await demonstration.shows(/As root, every endpoint gets one: sudo npm start -- \S+mixed\n/);
      await demonstration.shows(/web, cluster IP +127\.0\.0\.1:8080 +127\.0\.1\.11 ×/);
      await demonstration.shows(/front, cluster IP .*not asked: 10\.244\.1\.5 has no stand-in/);
      assert.match(await askFromSecondTerminal(demonstration), / in userspace mode on node worker-1, /);
    } finally {
      other.close();
    }
  });

  it('--help shows the usage', async () => {
    const demonstration = start(NOBODY, '--help');
    assert.equal(await demonstration.ended(), 0);
    assert.match(demonstration.output, /^Usage: npm start -- \[PATH\]/m);
  });

  it('ends with one clear error when it cannot use the arguments or manifests', async () => {
    const broken = folderOf('broken', '{"kind": "Service", "apiVersion": "v1", "spec": []}');
    const nothing = folderOf('nothing', '{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}');
    const noAddress = folderOf(
      'no-address',
      '{"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}',
    );
    const faults: [args: string[], complaint: RegExp][] = [
      [['/nowhere'], /^npm start: cannot read manifests at \/nowhere: .*no such file/m],
      [[broken], /^npm start: cluster\.json:1:\d+: .*metadata/m],
      [[nothing], /^npm start: no Service in \S+\/nothing/m],
      [[noAddress], /^npm start: no Service in \S+\/no-address .*default\/web \(no spec\.clusterIP/m],
      [['--nope'], /^npm start: unknown flag --nope; see npm start -- --help/m],
      [['a', 'b'], /^npm start: want one PATH, got 2; see npm start -- --help/m],
    ];
    for (const [args, complaint] of faults) {
      const demonstration = start(ROOT, ...args);
      assert.equal(await demonstration.ended(), 1, demonstration.output);
      assert.match(demonstration.output, complaint);
      assert.equal(demonstration.output.match(/^npm start: /gm)?.length, 1);
      assert.doesNotMatch(demonstration.output, /kube-proxy runs| {4}at /);
    }
  });
});
