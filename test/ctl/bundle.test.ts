/** The archive for a support case: written by a real program, free of secrets, and read back offline. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type {
  EndpointList,
  ExplanationReport,
  JournalReport,
  ServiceList,
  StatusReport,
} from '../../src/inspect/api.ts';
import { annotationPrefix } from '../../src/model/own-annotations.ts';
import { maxStableEndpoints } from '../../src/model/stable-table.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { Site } from '../program/started.ts';
import { complaint, ctl, eventuallyReported, printed } from './ctl.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

/** Parts of secrets that no file may contain. */
const token = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.cGxhbnRlZC1zaWduYXR1cmU';
const opaque = 'planted-opaque-token-7';
const key = 'MHcCAQEEIPlantedPrivateKeyBytes';
const certificate = 'MIIBplantedCertificateBytes';
const pemKey = `-----BEGIN EC PRIVATE KEY-----\n${key}\n-----END EC PRIVATE KEY-----\n`;
const pemCertificate = `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`;
const secrets = [token, opaque, key, certificate, Buffer.from(pemKey).toString('base64').slice(0, 40)];

describe('kube-proxyctl bundle', { skip: skip ?? false }, () => {
  let site: Site;
  let archive: string;
  const offline = (args: string) => printed(`--bundle ${archive} ${args}`);
  const both = async <T>(args: string): Promise<[T, T]> => [
    JSON.parse(await printed(`${args} -o json`)) as T,
    JSON.parse(await offline(`${args} -o json`)) as T,
  ];

  before(async () => {
    sh('ip', 'addr', 'add', '192.0.2.1/32', 'dev', 'lo');
    site = await Site.open();
    plantInKubeconfig(site);
    site.api.put('services', apiService('web'));
    site.api.put('endpointSlices', apiSlice('web', ['10.244.0.5', '10.244.0.6']));
    const crowd = apiService('crowd', 80, { clusterIP: '10.96.0.4' });
    const annotations = { [`${annotationPrefix}balance`]: 'hash-client' };
    site.api.put('services', { ...crowd, metadata: { ...crowd.metadata, annotations } });
    const tooMany = Array.from({ length: maxStableEndpoints + 1 }, (_, i) => `10.244.1.${i}`);
    site.api.put('endpointSlices', apiSlice('crowd', tooMany));
    // The value of a wrong field gets into the log, the journal, the status and the metrics.
    const { spec, ...rest } = apiService('odd', 80, { clusterIP: '10.96.0.3' });
    const externalIPs = [
      token,
      `token: ${opaque}`,
      pemKey,
      pemCertificate,
      Buffer.from(pemKey).toString('base64'),
    ];
    site.api.put('services', { ...rest, spec: { ...(spec as object), externalIPs } });
    process.env.KPT_PLANTED = `${token} ${opaque} ${pemKey}`;
    // The program logs this variable.
    process.env.NODE_OPTIONS = `--title=${token}`;
    const proxy = await site.start(
      site.writeConfig({ metricsBindAddress: '127.0.0.1:10249', winkernel: { networkName: token } }),
    );
    delete process.env.NODE_OPTIONS;
    await proxy.serves('http://127.0.0.1:10249');
    await eventuallyReported('the first sync', async () => {
      const outcome = await ctl('status', '-o', 'json');
      const { families } = JSON.parse(outcome.stdout) as StatusReport;
      return families.every(({ syncs }) => syncs > 0);
    });
    assert.match(proxy.stderr, new RegExp(opaque), 'the log has the secrets that are to be left out');
    archive = site.path('case.tar.gz');
    assert.match(await printed(`bundle -f ${archive}`), /^Wrote .*case\.tar\.gz with \d+ files\.\n/);
  });
  after(() => site.close());

  it('has every part, or says why not, and tar can read it', () => {
    const names = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n');
    for (const name of [
      'status',
      'node',
      'services',
      'endpoints',
      'diff',
      'traffic',
      'journal',
      'configz',
      'contents',
    ]) {
      assert.ok(names.includes(`${name}.json`), `${name}.json in ${names}`);
    }
    for (const name of ['log.txt', 'metrics.txt', 'rules/nft.txt']) assert.ok(names.includes(name), name);
    assert.equal(statSync(archive).mode & 0o777, 0o600);
    assert.match(fileOf('log.txt'), /"Runtime settings"/);
    assert.match(fileOf('rules/nft.txt'), /table ip kube-proxy/);
    assert.match(fileOf('metrics.txt'), /^kubeproxy_sync_proxy_rules_duration_seconds_count/m);
    assert.match(fileOf('configz.json'), /"mode":"nftables"/);
    assert.deepEqual(JSON.parse(fileOf('node.json')).nodeIPs, ['192.0.2.1']);
  });

  it('has no token, key or certificate', () => {
    const text = execFileSync('tar', ['-xzOf', archive], { encoding: 'utf8', maxBuffer: 1 << 28 });
    for (const secret of secrets) assert.ok(!text.includes(secret), `${secret} is in the archive`);
    assert.match(fileOf('configz.json'), /"networkName":"<redacted>"/);
    assert.match(text, /Service shop\/odd: spec\.externalIPs/);
  });

  it('answers offline as the proxy did', async () => {
    const [live, recorded] = await both<ServiceList>('services shop/web');
    assert.deepEqual(recorded, live);
    const [endpoints, recordedEndpoints] = await both<EndpointList>('endpoints 10.244.0.5');
    assert.deepEqual(recordedEndpoints, endpoints);
    for (const name of ['web', 'crowd']) {
      const [explained, again] = await both<ExplanationReport>(`explain 10.244.0.9 shop/${name}:80`);
      assert.deepEqual(again.planned, explained.planned);
      assert.match(again.kernelUnknown ?? '', /no kernel that could be asked/);
    }
    const [journal, recordedJournal] = await both<JournalReport>('journal shop/web');
    assert.deepEqual(recordedJournal.items, journal.items.slice(0, recordedJournal.items.length));
    assert.match(await offline('diff'), /^IPv4: no difference$/m);
    const status = await ctl('--bundle', archive, 'status');
    assert.match(status.stdout, /in nftables mode on node node-a, .*degraded/);
    assert.equal(status.code, 2);
  });

  it('answers offline while no proxy runs, and tells what it cannot', async () => {
    await site.stopAll();
    assert.match(await offline('services'), /shop\/web:http\/TCP/);
    assert.match(await complaint(`--bundle ${archive} services shop/wbe`), /no service port is called/);
    assert.match(await complaint(`--bundle ${archive} status --watch`), /--watch needs a running kube-proxy/);
    assert.match(await complaint(`--bundle ${archive} diff --manifests x`), /exclude each other/);
    const other = site.path('other.tar.gz');
    writeFileSync(other, 'text');
    assert.match(await complaint(`--bundle ${other} status`), /cannot read the archive .*other\.tar\.gz/);
    const down = site.path('down.tar.gz');
    const outcome = await ctl('bundle', '-f', down);
    assert.equal(outcome.code, 1, outcome.stderr);
    assert.match(outcome.stdout, /not collected: status\.json: cannot ask kube-proxy/);
    assert.match(
      await complaint(`--bundle ${down} status`),
      /has no status\.json: cannot ask kube-proxy at http:\/\/127\.0\.0\.1:10249/,
    );
    assert.match(readFileSync(down).subarray(0, 2).toString('hex'), /^1f8b$/);
  });

  function fileOf(name: string): string {
    return execFileSync('tar', ['-xzOf', archive, name], { encoding: 'utf8', maxBuffer: 1 << 26 });
  }
});

/** Gives the program credentials: a token, and a key with its certificate. */
function plantInKubeconfig(site: Site): void {
  const path = site.path('kubeconfig');
  const kubeconfig = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const user = {
    token: opaque,
    'client-key-data': base64(pemKey),
    'client-certificate-data': base64(pemCertificate),
  };
  kubeconfig.users = [{ name: 'me', user }];
  kubeconfig.contexts = [{ name: 'test', context: { cluster: 'test', user: 'me' } }];
  writeFileSync(path, JSON.stringify(kubeconfig));
}
