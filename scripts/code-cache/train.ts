/**
 * `train.ts DIRECTORY MODE`: starts the bundle in DIRECTORY as its entry does, lets it sync the objects of a small API
 * server, and writes the functions that V8 compiled until then to the cache, in addition to those that are in it.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { optimizeAsUsual } from '../../src/app/optimization.ts';
import { startApiServer } from '../../test/cluster/apiserver/server.ts';
import { digestLine, saveCache } from './build.ts';

const [directory = '', mode = ''] = process.argv.slice(2);
const filename = join(directory, 'kube-proxy.js');
const digest = digestLine('').length - '\n//'.length;
const watchedResources = ['nodes', 'services', 'endpointSlices', 'serviceCIDRs'] as const;
/** From the last watch until the first sync and what follows it. */
const syncedMs = 2_000;

async function main(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'kpt-code-cache-'));
  process.on('exit', () => rmSync(place, { recursive: true, force: true }));
  const api = await startApiServer();
  fill(api);
  const { script, source } = load();
  // V8 forgets functions that were not called for a while. V8 compares this setting with that of a cache, so it is
  // changed after the cache was read, and set back before it is written. So are those of a start.
  setFlagsFromString('--no-flush-bytecode');
  start(script, writeConfig(place, api.url));
  while (!watchedResources.every((resource) => api.watches(resource).length > 0)) await sleep(100);
  await sleep(syncedMs);
  setFlagsFromString('--flush-bytecode');
  optimizeAsUsual();
  saveCache(directory, source, script);
  process.exit();
}

/** Loads the bundle with the functions of the modes that were trained before. Throws when V8 refuses these. */
function load(): { readonly script: Script; readonly source: string } {
  const source = readFileSync(join(directory, 'kube-proxy.bundle'), 'latin1');
  const cacheFile = join(directory, 'kube-proxy.cache');
  const cachedData = existsSync(cacheFile) ? readFileSync(cacheFile).subarray(digest) : undefined;
  const script = new Script(source, { filename, ...(cachedData && { cachedData }) });
  if (script.cachedDataRejected) throw new Error(`V8 refuses ${cacheFile}`);
  return { script, source };
}

function start(script: Script, config: string): void {
  const program = script.runInThisContext()(createRequire(filename), filename, `file://${filename}`);
  void program.main(['--config', config]);
}

function writeConfig(place: string, server: string): string {
  const kubeconfig = join(place, 'kubeconfig');
  writeFileSync(
    kubeconfig,
    `apiVersion: v1
kind: Config
current-context: training
contexts: [{ name: training, context: { cluster: training, user: training } }]
clusters: [{ name: training, cluster: { server: "${server}" } }]
users: [{ name: training, user: {} }]
`,
  );
  const config = join(place, 'config.yaml');
  writeFileSync(
    config,
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${mode}
hostnameOverride: node-a
clientConnection:
  kubeconfig: ${kubeconfig}
conntrack: { maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
`,
  );
  return config;
}

function fill(api: Awaited<ReturnType<typeof startApiServer>>): void {
  const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }];
  api.put('nodes', {
    metadata: { name: 'node-a' },
    spec: { podCIDRs: ['10.244.0.0/24'] },
    status: { addresses },
  });
  const kinds = [
    { type: 'ClusterIP' },
    { type: 'NodePort', sessionAffinity: 'ClientIP' },
    { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 32_000 },
  ];
  for (const [i, kind] of kinds.entries()) {
    const metadata = { namespace: 'a', name: `web-${i}`, labels: { app: 'web' } };
    const ip = `10.96.0.${10 + i}`;
    const ports = [
      { name: 'http', port: 80, protocol: 'TCP', ...(i > 0 && { nodePort: 30_080 + i }) },
      { name: 'dns', port: 53, protocol: 'UDP', ...(i > 0 && { nodePort: 30_053 + i }) },
    ];
    api.put('services', {
      metadata,
      spec: { clusterIP: ip, clusterIPs: [ip], ipFamilies: ['IPv4'], ports, ...kind },
      status: { loadBalancer: i === 2 ? { ingress: [{ ip: '198.51.100.1' }] } : {} },
    });
    api.put('endpointSlices', {
      metadata: { namespace: 'a', name: `web-${i}-x`, labels: { 'kubernetes.io/service-name': `web-${i}` } },
      addressType: 'IPv4',
      endpoints: [1, 2].map((n) => ({
        addresses: [`10.244.0.${10 * i + n}`],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: 'node-a',
      })),
      ports: ports.map(({ name, port, protocol }) => ({ name, port, protocol })),
    });
  }
}

await main();
