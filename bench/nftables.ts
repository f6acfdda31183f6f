/** nftables mode at scale: the first sync of a node, a restart, and the change of one endpoint. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { NftablesBackend } from '../src/backends/nftables/apply.ts';
import { removeTable } from '../src/backends/nftables/cleanup.ts';
import type { NftClient } from '../src/kernel/nft/client.ts';
import { openKernel } from '../src/kernel/open.ts';
import { systemClock } from '../src/lib/clock.ts';
import { nodePortAddresses } from '../src/model/node-port-addresses.ts';
import { silentLogger } from '../src/obs/log.ts';
import { ignoredMetric } from '../src/obs/metrics.ts';
import type { ServicePlan } from '../src/plan/service-plan.ts';
import { ownNamespace, runInNamespace } from '../test/cluster/lab/namespace.ts';
import { type EndpointParts, planOf } from '../test/cluster/plans.ts';

const sizes: readonly (readonly [services: number, endpoints: number])[] = [
  [1_000, 10],
  [10_000, 10],
  [50_000, 10],
];

/** Measures all sizes, in a network namespace of its own, and prints a line for each step. */
export async function run(): Promise<void> {
  if (ownNamespace() !== undefined) for (const size of sizes) await measure(...size);
  else if (runInNamespace(import.meta.url) !== 0) throw new Error('the benchmark failed');
}

async function measure(services: number, endpoints: number): Promise<void> {
  const kernel = await openKernel(systemClock);
  await removeTable(kernel.nft, 'IPv4');
  const commits = { ms: 0, bytes: 0 };
  const client = timed(kernel.nft, commits);
  const plans = new Map<string, ServicePlan>();
  for (let i = 0; i < services; i++) {
    const plan = planFor(i, endpoints);
    plans.set(plan.port.key, plan);
  }
  const request = { plans, serviceCIDRs: ['10.96.0.0/12'], totalEndpoints: services * endpoints };
  const step = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    commits.ms = commits.bytes = 0;
    delay.enable();
    const start = performance.now();
    await work();
    const ms = performance.now() - start;
    delay.disable();
    const columns = [
      `${services} x ${endpoints}`,
      name,
      `${ms.toFixed(1)} ms`,
      `commit ${commits.ms.toFixed(1)} ms`,
      `${(commits.bytes / 1e6).toFixed(2)} MB`,
      `loop blocked ${(delay.max / 1e6).toFixed(0)} ms`,
      `rss ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`,
    ];
    console.log(columns.join('\t'));
  };
  let backend = backendOn(client);
  await step('first sync', () => backend.sync({ ...request, changed: 'all' }));
  for (let i = 0; i < 3; i++) {
    const changed = planFor(i, endpoints + 1);
    plans.set(changed.port.key, changed);
    await step('one endpoint more', () => backend.sync({ ...request, changed: new Set([changed.port.key]) }));
  }
  for (let i = 0; i < 3; i++) {
    const changed = planFor(i, endpoints + 1, 1);
    plans.set(changed.port.key, changed);
    await step('one endpoint replaced', () =>
      backend.sync({ ...request, changed: new Set([changed.port.key]) }),
    );
  }
  backend = backendOn(client);
  await step('restart', () => backend.sync({ ...request, changed: 'all' }));
  kernel.close();
}

function backendOn(client: NftClient): NftablesBackend {
  return new NftablesBackend({
    settings: {
      family: 'IPv4',
      masqueradeBit: 14,
      masqueradeAll: false,
      localDetector: { kind: 'cidr', cidr: '10.244.0.0/24' },
      nodePortAddresses: nodePortAddresses('IPv4', []),
      nodeIP: '192.0.2.10',
      localhostNodePorts: false,
    },
    client,
    interfaceAddresses: async () => [],
    metrics: { nftablesSyncFailures: ignoredMetric, nftablesCleanupFailures: ignoredMetric },
    logger: silentLogger,
    clock: systemClock,
  });
}

/** The first `skipped` endpoints are left out, so that another one takes their place. */
function planFor(index: number, endpoints: number, skipped = 0): ServicePlan {
  const parts: EndpointParts[] = Array.from({ length: endpoints }, (_, i) => ({
    ip: `10.${128 + (index >> 9)}.${(index >> 1) & 0xff}.${((index & 1) << 7) + i + skipped}`,
  }));
  const clusterIP = `10.${96 + (index >> 16)}.${(index >> 8) & 0xff}.${index & 0xff}`;
  return planOf({ name: `service-${index}`, clusterIP }, parts);
}

/** The same client, with the time that it spends in commits. */
function timed(client: NftClient, total: { ms: number; bytes: number }): NftClient {
  return new Proxy(client, {
    get(target, property) {
      const member: unknown = Reflect.get(target, property, target);
      if (typeof member !== 'function') return member;
      if (property !== 'commit') return member.bind(target);
      return async (batch: Parameters<NftClient['commit']>[0]) => {
        const start = performance.now();
        const result = await target.commit(batch);
        total.ms += performance.now() - start;
        total.bytes += result.bytes;
        return result;
      };
    },
  });
}

if (import.meta.main) await run();
