import type { Backend } from '../backends/backend.ts';
import type { BackendContext } from '../backends/mode.ts';
import { RepairBudget } from '../backends/repair-budget.ts';
import { DepartedSockets } from '../conntrack/departed-sockets.ts';
import { kernelFlowTable, tableFacts, type WithoutFastPath } from '../conntrack/kernel-table.ts';
import { ConntrackReconciler } from '../conntrack/reconciler.ts';
import type { Problems } from '../health/problems.ts';
import type { ProxyHealth } from '../health/proxy-health.ts';
import { ServiceHealthServers } from '../health/service-health.ts';
import type { Capacity } from '../http/capacity.ts';
import type { Journalist } from '../inspect/journal.ts';
import { cpuMs } from '../kernel/cpu-time.ts';
import { openConntrackClient } from '../kernel/ct/client.ts';
import { openSocketClient } from '../kernel/diag/client.ts';
import { Sysctl } from '../kernel/sysctl.ts';
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
import { FamilyProxier, type FlowReconciler, type ProxierSettings } from '../proxier/family-proxier.ts';
import { noFlows, reconcileFlows } from '../proxier/flows.ts';
import { SetAside } from '../proxier/set-aside.ts';
import { healthCheckFailed, setAsideEvent } from './events.ts';
import { LostConfigurationError } from './live-configuration.ts';
import { ownAddresses } from './node-facts.ts';
import { modeContext, type Start, serviceDefaults } from './start.ts';

export interface ProxiersOptions extends Start {
  readonly metrics: ProxyMetrics;
  readonly health: ProxyHealth;
  readonly problems: Problems;
  readonly recorder: EventRecorder;
  readonly journal: Journalist;
  readonly capacity: Capacity;
}

export interface Proxiers {
  /** IPv4 before IPv6. */
  readonly families: readonly FamilyProxier[];
  readonly setAside: SetAside;
  /**
   * Replaces the rules of one configuration with those of another. Rejects when the kernel does not take the new ones,
   * and has then restored the former ones; with a LostConfigurationError when it could not.
   */
  change(to: Start, from: Start): Promise<void>;
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
  const opener = (start: Start) => (proxier: FamilyProxier) =>
    openSettings(proxier.family, start, { metrics, budget, requestSync: () => proxier.repair() });
  const change = (to: Start, from: Start) =>
    changeRules(families, { to: opener(to), from: opener(from), logger });
  return { families, setAside, change };
}

interface RuleChange {
  readonly to: (proxier: FamilyProxier) => Promise<ProxierSettings>;
  readonly from: (proxier: FamilyProxier) => Promise<ProxierSettings>;
  readonly logger: Logger;
}

/** See `Proxiers.change`. While the mode cannot run with the new settings, the former rules are kept in order as before. */
export async function changeRules(families: readonly FamilyProxier[], change: RuleChange): Promise<void> {
  const unused = await openAll(families, change.to);
  await Promise.all(families.map((proxier) => proxier.pause()));
  const replaced: FamilyProxier[] = [];
  try {
    for (const [proxier, settings] of unused) {
      unused.delete(proxier);
      replaced.push(proxier);
      await proxier.replace(settings);
      await proxier.syncReplaced();
    }
  } catch (error) {
    for (const { backend } of unused.values()) await backend.close();
    for (const proxier of replaced) await restoreRules(proxier, change);
    throw error;
  } finally {
    for (const proxier of families) proxier.resume();
  }
}

/** Opens the settings of every family, or of none. */
async function openAll(
  families: readonly FamilyProxier[],
  open: RuleChange['to'],
): Promise<Map<FamilyProxier, ProxierSettings>> {
  const opened = new Map<FamilyProxier, ProxierSettings>();
  try {
    for (const proxier of families) opened.set(proxier, await open(proxier));
    return opened;
  } catch (error) {
    for (const { backend } of opened.values()) await backend.close();
    throw error;
  }
}

/** Goes back to the former settings. A sync that fails is tried again as at any time. */
async function restoreRules(proxier: FamilyProxier, { from, logger }: RuleChange): Promise<void> {
  let settings: ProxierSettings;
  try {
    settings = await from(proxier);
  } catch (error) {
    throw new LostConfigurationError(`the former rules cannot be restored: ${messageOf(error)}`, {
      cause: error,
    });
  }
  await proxier.replace(settings);
  await proxier.syncReplaced().catch((error: unknown) => {
    logger.error(error, 'Sync failed', { ipFamily: proxier.family });
  });
}

async function createProxier(
  family: Family,
  setAside: SetAside,
  options: ProxiersOptions & Pick<BackendContext, 'budget'>,
): Promise<FamilyProxier> {
  const { completed, mode, nodeName, metrics, health, problems, recorder, journal, budget, capacity } =
    options;
  const logger = options.logger.named(family);
  const requestSync = () => proxier.repair();
  const settings = await openSettings(family, options, { metrics, budget, requestSync });
  const proxier = new FamilyProxier({
    family,
    nodeName,
    settings,
    allowExternalIPs: completed.gates.enabled('AllowServiceExternalIPs'),
    defaults: serviceDefaults(options),
    countsServices: mode.countsServices ?? false,
    metrics,
    health,
    serviceHealth: new ServiceHealthServers({
      nodeName,
      proxyHealthy: () => stateOf(problems.list()) !== 'unhealthy',
      onBindFailure: (failure) => recorder.event(healthCheckFailed(failure)),
      capacity,
      logger,
    }),
    flows: await openFlows(
      family,
      settings.backend,
      (work) => proxier.withoutFastPath(work),
      metrics,
      logger,
    ),
    departedSockets: mode.resetsDeparted ? departedSockets(family, logger) : undefined,
    journal,
    onProblem: (problem) => setAside.report(family, problem),
    onRefused: (refused) => setAside.refused(family, refused),
    clock: systemClock,
    logger,
  });
  return proxier;
}

type BackendOptions = Pick<BackendContext, 'metrics' | 'budget' | 'requestSync'>;

/** What the configuration decides in one family. Throws when the mode cannot run with it. */
async function openSettings(family: Family, start: Start, options: BackendOptions): Promise<ProxierSettings> {
  const { config } = start.completed;
  const logger = start.logger.named(family);
  return {
    healthCheckAddresses: await healthCheckAddresses(start.nodePortAddresses[family], logger),
    backend: await createBackend(family, start, options),
    minSyncPeriod: toMillis(config.minSyncPeriod),
    syncPeriod: toMillis(config.syncPeriod),
  };
}

async function createBackend(family: Family, start: Start, options: BackendOptions): Promise<Backend> {
  const { mode, families } = start;
  try {
    return await mode.create({ ...modeContext(family, start), ...options });
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

/** Opens the kernel only when an endpoint has departed. */
function departedSockets(family: Family, logger: Logger): DepartedSockets {
  const open = async () => {
    const libc = await loadLibc();
    return {
      ownAddresses: await ownAddresses(),
      flows: openConntrackClient(libc, { clock: systemClock }),
      sockets: openSocketClient(libc, { clock: systemClock }),
    };
  };
  return new DepartedSockets({ family, open, logger });
}

/** Opens a socket of its own to remove stale UDP flows, so that a long dump does not delay a sync. */
async function openFlows(
  family: Family,
  { flows }: Backend,
  withoutFastPath: WithoutFastPath,
  metrics: ProxyMetrics,
  logger: Logger,
): Promise<FlowReconciler> {
  if (flows === 'none') return noFlows;
  const client = openConntrackClient(await loadLibc(), { clock: systemClock });
  const sysctl = new Sysctl(systemFiles);
  const reconciler = new ConntrackReconciler({
    family,
    table: kernelFlowTable(client, family, () => tableFacts(sysctl), withoutFastPath),
    ownAddresses: async () => new Set(await ownAddresses()),
    duration: metrics.conntrackSyncDuration,
    deleted: metrics.conntrackDeleted,
    clock: systemClock,
    logger,
  });
  return reconcileFlows(reconciler, flows?.answerers);
}
