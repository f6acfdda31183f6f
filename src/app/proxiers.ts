import type { Backend } from '../backends/backend.ts';
import type { BackendContext } from '../backends/mode.ts';
import { RepairBudget } from '../backends/repair-budget.ts';
import { kernelFlowTable } from '../conntrack/kernel-table.ts';
import { ConntrackReconciler } from '../conntrack/reconciler.ts';
import type { Problems } from '../health/problems.ts';
import type { ProxyHealth } from '../health/proxy-health.ts';
import { ServiceHealthServers } from '../health/service-health.ts';
import type { Journalist } from '../inspect/journal.ts';
import { cpuMs } from '../kernel/cpu-time.ts';
import { openConntrackClient } from '../kernel/ct/client.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { EventRecorder } from '../kube/events/recorder.ts';
import { systemClock } from '../lib/clock.ts';
import { toMillis } from '../lib/duration.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Family } from '../model/ip.ts';
import { type NodePortAddresses, nodePortIPs } from '../model/node-port-addresses.ts';
import { stateOf } from '../model/problem.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import type { Logger } from '../obs/log.ts';
import type { ProxyMetrics } from '../obs/proxy-metrics.ts';
import { FamilyProxier, type FlowReconciler } from '../proxier/family-proxier.ts';
import { noFlows, reconcileFlows } from '../proxier/flows.ts';
import { SetAside } from '../proxier/set-aside.ts';
import { healthCheckFailed, setAsideEvent } from './events.ts';
import { ownAddresses } from './node-facts.ts';
import { modeContext, type Start } from './start.ts';

export interface ProxiersOptions extends Start {
  readonly metrics: ProxyMetrics;
  readonly health: ProxyHealth;
  readonly problems: Problems;
  readonly recorder: EventRecorder;
  readonly journal: Journalist;
}

export interface Proxiers {
  /** IPv4 before IPv6. */
  readonly families: readonly FamilyProxier[];
  readonly setAside: SetAside;
}

/** Creates one proxier per family. Throws when the mode cannot run in one of them. */
export async function createProxiers(options: ProxiersOptions): Promise<Proxiers> {
  const { nodeName, recorder, journal, metrics, problems, logger } = options;
  const setAside = new SetAside({
    announce: (subject, text) => {
      const service = subject.kind === 'Service' ? [{ service: `${subject.namespace}/${subject.name}` }] : [];
      journal.note({ event: 'NotProgrammed', text, services: service });
      // A slice may legally contain what no proxy can use, and every node would report it.
      if (subject.kind === 'Service') recorder.event(setAsideEvent(nodeName, subject, text));
    },
    logger,
  });
  metrics.setAside.readFrom(() => setAside.samples());
  problems.from(() => setAside.problems());
  const families: FamilyProxier[] = [];
  const budget = new RepairBudget(systemClock, () => cpuMs(systemFiles));
  for (const family of options.families.toSorted()) {
    const proxier = await createProxier(family, setAside, { ...options, budget });
    problems.from(() => proxier.problems());
    families.push(proxier);
  }
  metrics.rulesWrong.readFrom(() =>
    families.map(({ family, repairs }) => ({ labels: { ip_family: family }, value: repairs.wrongMs / 1000 })),
  );
  return { families, setAside };
}

async function createProxier(
  family: Family,
  setAside: SetAside,
  options: ProxiersOptions & Pick<BackendContext, 'budget'>,
): Promise<FamilyProxier> {
  const { completed, mode, nodeName, metrics, health, problems, recorder, journal } = options;
  const { config, gates } = completed;
  const logger = options.logger.named(family);
  const healthCheckIPs = await healthCheckAddresses(options.nodePortAddresses[family], logger);
  const backend = await createBackend(family, options, () => proxier.repair());
  const proxier = new FamilyProxier({
    family,
    nodeName,
    backend,
    allowExternalIPs: gates.enabled('AllowServiceExternalIPs'),
    minSyncPeriod: toMillis(config.minSyncPeriod),
    syncPeriod: toMillis(config.syncPeriod),
    countsServices: mode.countsServices ?? false,
    metrics,
    health,
    serviceHealth: new ServiceHealthServers({
      nodeName,
      addresses: healthCheckIPs,
      proxyHealthy: () => stateOf(problems.list()) !== 'unhealthy',
      onBindFailure: (failure) => recorder.event(healthCheckFailed(failure)),
      logger,
    }),
    flows: await openFlows(family, backend, metrics, logger),
    journal,
    onProblem: (problem) => setAside.report(family, problem),
    onRefused: (refused) => setAside.refused(family, refused),
    clock: systemClock,
    logger,
  });
  return proxier;
}

async function createBackend(
  family: Family,
  options: ProxiersOptions & Pick<BackendContext, 'budget'>,
  requestSync: () => void,
): Promise<Backend> {
  const { mode, metrics, budget, families } = options;
  try {
    return await mode.create({ ...modeContext(family, options), metrics, budget, requestSync });
  } catch (error) {
    const isDualStack = families.length > 1;
    const prefix = isDualStack ? `unable to create ${family.toLowerCase()} proxier: ` : '';
    throw new Error(`unable to create proxier: ${prefix}${messageOf(error)}`, { cause: error });
  }
}

/** Addresses for the health check node ports of Services: all of them, or those that serve node ports. */
async function healthCheckAddresses(addresses: NodePortAddresses, logger: Logger): Promise<string[]> {
  const everywhere = [addresses.family === 'IPv4' ? '0.0.0.0' : '::'];
  if (addresses.matchAll) return everywhere;
  try {
    return nodePortIPs(addresses, await ownAddresses());
  } catch (error) {
    logger.error(error, 'Failed to list addresses of the node; health check ports listen everywhere');
    return everywhere;
  }
}

/** Opens a socket of its own to remove stale UDP flows, so that a long dump does not delay a sync. */
async function openFlows(
  family: Family,
  { flows }: Backend,
  metrics: ProxyMetrics,
  logger: Logger,
): Promise<FlowReconciler> {
  if (flows === 'none') return noFlows;
  const client = openConntrackClient(await loadLibc(), { clock: systemClock });
  const reconciler = new ConntrackReconciler({
    family,
    table: kernelFlowTable(client, family),
    ownAddresses: async () => new Set(await ownAddresses()),
    duration: metrics.conntrackSyncDuration,
    deleted: metrics.conntrackDeleted,
    clock: systemClock,
    logger,
  });
  return reconcileFlows(reconciler, flows?.answerers);
}
