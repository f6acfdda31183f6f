import { metricsServerHandler } from '../admin/metrics-server.ts';
import { MovableServer, type Place } from '../admin/movable-server.ts';
import { flagTexts } from '../cli/options.ts';
import { buildInfo } from '../cli/version.ts';
import { configToJSON } from '../config/encode.ts';
import type { ProxyConfig } from '../config/types.ts';
import { validated } from '../config/validate.ts';
import { CONFIG_CHANGED, type ConfigWatch, watchConfigFile } from '../config/watch.ts';
import { healthzRoutes } from '../health/healthz-server.ts';
import type { Problems } from '../health/problems.ts';
import type { ProxyHealth } from '../health/proxy-health.ts';
import type { Capacity } from '../http/capacity.ts';
import type { RequestListener } from '../http/exchange.ts';
import { createRouter, type Handler } from '../http/router.ts';
import type { Journal } from '../inspect/journal.ts';
import type { TrafficSource } from '../inspect/traffic.ts';
import { hasNetAdmin } from '../kernel/capabilities.ts';
import { socketOwner } from '../kernel/socket-owner.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { EventRecorder } from '../kube/events/recorder.ts';
import { systemClock } from '../lib/clock.ts';
import { toMillis } from '../lib/duration.ts';
import { product, productText } from '../lib/product.ts';
import { type ConfigurationStatus, configProblems } from '../model/config-file-status.ts';
import { isNodeEligible } from '../model/node-eligibility.ts';
import { returnFreeMemory } from '../native/free-memory.ts';
import type { RootLogger } from '../obs/klog.ts';
import { processStartTime } from '../obs/process-metrics.ts';
import { Router } from '../proxier/router.ts';
import { accountingLeftovers } from './accounting-leftovers.ts';
import { removeReplaced } from './cleanup.ts';
import { checkLogging, completeWith, gateReport } from './complete.ts';
import { CopyLock, copyLockName } from './copy-lock.ts';
import type { NodeEvents } from './events.ts';
import { JournalWatch } from './journal-watch.ts';
import { applyConntrack, applyOOMScore } from './kernel-settings.ts';
import { LiveConfiguration } from './live-configuration.ts';
import { loggerOptions } from './logging.ts';
import type { Metrics } from './metrics.ts';
import { optimizeAsUsual, optimizeLess } from './optimization.ts';
import type { Proxiers } from './proxiers.ts';
import { describeNode, modeContext, needsPodCIDRs, type Start } from './start.ts';
import { TakeOver } from './take-over.ts';

/** How long an ending process waits until its last events are delivered. */
const LAST_EVENTS_MS = 3000;
/** From the first sync until what the start needed is freed. */
const START_FREED_MS = 5000;

export interface ProxyServerParts extends Start {
  readonly recorder: EventRecorder;
  readonly events: NodeEvents;
  readonly health: ProxyHealth;
  readonly problems: Problems;
  readonly journal: Journal;
  readonly metrics: Metrics;
  readonly proxiers: Proxiers;
  readonly capacity: Capacity;
  readonly logger: RootLogger;
}

/** The built proxy, ready to run. */
export class ProxyServer {
  readonly #parts: ProxyServerParts;
  readonly #live: LiveConfiguration;
  readonly #servers = new Map<AddressField, MovableServer>();
  /** The pages of the metrics server, as the configuration in use wants them. */
  #pages: RequestListener | undefined;
  /** Created with the server, so that it notices every change from then on. */
  readonly #configWatch: ConfigWatch | undefined;
  #traffic: TrafficSource | undefined;
  readonly #failure = Promise.withResolvers<never>();

  constructor(parts: ProxyServerParts) {
    this.#parts = parts;
    // A failure may come before run() awaits it, and must not count as unhandled.
    this.#failure.promise.catch(() => {});
    this.#live = this.#liveConfiguration();
    this.#configWatch = this.#watchConfig();
    parts.problems.from(() => configProblems(this.#configWatch?.status()));
  }

  /**
   * Starts everything, in upstream's order. Never resolves; rejects with the reason to exit. Removes what other modes
   * left after the first sync of every family: until then, rules of another mode may still serve.
   */
  async run(): Promise<never> {
    const { cluster, nodeManager, recorder, events, proxiers, logger } = this.#parts;
    this.#configWatch?.start();
    this.#logStart();
    void applyOOMScore(this.#parts);
    recorder.attach();
    this.#serveHealth();
    await this.#serveMetrics();
    const router = new Router(proxiers.families, proxiers.setAside, logger);
    optimizeLess();
    cluster.source.start(['services', 'endpointSlices', 'serviceCIDRs'], router);
    nodeManager.react({
      onFatal: (reason) => this.#failure.reject(new Error(reason)),
      onZone: (zone) => {
        for (const proxier of proxiers.families) proxier.setZone(zone ?? '');
      },
    });
    events.starting();
    this.#watchForJournal();
    this.#startWriting().catch(this.#failure.reject);
    try {
      return await this.#failure.promise;
    } finally {
      await recorder.flush(LAST_EVENTS_MS);
    }
  }

  /** Starts to sync as soon as no other copy of this program writes rules. */
  async #startWriting(): Promise<void> {
    const { proxiers } = this.#parts;
    const takeOver = this.#takeOver();
    // A process without this privilege changes nothing that another one could change, too.
    if (hasNetAdmin(systemFiles)) {
      await this.#copyLock().acquire();
      await this.#restoreAccounting();
    }
    for (const proxier of proxiers.families) proxier.start();
    await Promise.all(proxiers.families.map((proxier) => proxier.firstSync));
    optimizeAsUsual();
    systemClock.setTimeout(() => this.#returnStartMemory(), START_FREED_MS);
    await this.#countForMetrics();
    await takeOver.run();
  }

  /** The node counts memory for this process, used or not, until it is returned. */
  #returnStartMemory(): void {
    returnFreeMemory().catch((error: unknown) => {
      this.#parts.logger.v(2).info('Failed to return free memory', { err: error });
    });
  }

  /** Sets back what a process changed that was killed while it observed traffic. */
  async #restoreAccounting(): Promise<void> {
    const { logger } = this.#parts;
    try {
      await accountingLeftovers.remove({ logger, scope: 'take-over' });
    } catch (error) {
      logger.error(error, 'Failed to set back the accounting of connections');
    }
  }

  /** Counts the traffic of Services from now on, if their metrics are wanted. */
  async #countForMetrics(): Promise<void> {
    const { options, metrics } = this.#parts;
    if (options.serviceMetrics.length === 0) return;
    const { meteredKinds, registerServiceMetrics } = await import('../traffic/service-metrics.ts');
    const source = await this.#openTraffic();
    const kinds = new Set(options.serviceMetrics);
    registerServiceMetrics(metrics.registry, {
      kinds,
      max: options.serviceMetricsMax,
      meter: await source.openMeter(meteredKinds(kinds)),
      clock: systemClock,
    });
  }

  #copyLock(): CopyLock {
    const { mode, problems, logger } = this.#parts;
    // As performance.timeOrigin, which would load a module of Node that nothing else at a start needs.
    const started = new Date(Date.now() - process.uptime() * 1000).toISOString();
    const lock = new CopyLock({
      name: copyLockName,
      about: `${mode.name} mode, ${productText(product)}, started ${started}`,
      owner: socketOwner,
      clock: systemClock,
      logger,
    });
    problems.from(() => lock.problems());
    return lock;
  }

  #takeOver(): TakeOver {
    const { mode, problems, events, logger } = this.#parts;
    const takeOver = new TakeOver({
      remove: (to) => removeReplaced(mode, to),
      announce: (note) => events.warn('LeftoverRules', note),
      clock: systemClock,
      logger,
    });
    problems.from(() => takeOver.problems());
    return takeOver;
  }

  #watchForJournal(): void {
    const { journal, problems, cluster } = this.#parts;
    const watch = new JournalWatch({
      journal,
      problems: () => problems.list(),
      sources: () => cluster.source.status(),
      clock: systemClock,
    });
    watch.start();
  }

  #watchConfig(): ConfigWatch | undefined {
    const { completed, journal, logger } = this.#parts;
    if (!completed.file) return undefined;
    const { path, text, readAt } = completed.file;
    return watchConfigFile(path, {
      content: text,
      readAt,
      clock: systemClock,
      onChange: (file) => this.#live.change(file),
      onError: (error) => {
        logger.error(error, 'Configuration file cannot be used, keeping the one in use', { path });
        journal.note({ event: 'Configuration', text: `${path} cannot be used: ${error.message}` });
      },
    });
  }

  #liveConfiguration(): LiveConfiguration {
    const { options, nodeManager, proxiers, health, journal, events, logger } = this.#parts;
    return new LiveConfiguration({
      start: this.#parts,
      complete: async (file) => {
        const completed = await completeWith(options, file, logger);
        checkLogging(completed);
        return { ...completed, config: validated(completed.config, completed.gates, gateReport(logger)) };
      },
      describe: (completed, from) => {
        const nodeStart = nodeManager.setNeedsPodCIDRs(needsPodCIDRs(completed.config));
        return describeNode({ ...from, completed, nodeStart }, new Set(from.families));
      },
      undescribe: (from) => void nodeManager.setNeedsPodCIDRs(needsPodCIDRs(from.completed.config)),
      holdsConnections: (start) =>
        start.families.some((family) => start.mode.holdsConnections?.(modeContext(family, start)) ?? false),
      takeUp: {
        client: (to) => to.cluster.configureClient(to.completed.config),
        conntrack: (to, from) => changeConntrack(to, from),
        servers: (to, from) => this.#moveServers(to, from),
        rules: async (to, from) => {
          await proxiers.change(to, from);
          health.setTimeout(healthTimeoutMs(to.completed.config));
        },
        process: applyOOMScore,
        pages: async (to) => {
          this.#pages = await this.#makePages(to);
        },
        logging: (to) => logger.configure(loggerOptions(to.completed.config.logging)),
      },
      journal,
      onRejected: (note) => events.configurationRejected(note),
      onRestart: () => this.#failure.reject(new Error(CONFIG_CHANGED)),
      onLost: this.#failure.reject,
      clock: systemClock,
      logger,
    });
  }

  #logStart(): void {
    const { options, logger } = this.#parts;
    const { gitVersion, goVersion } = buildInfo(options.version.gitVersion);
    logger.info('Version info', { version: gitVersion, product: productText(product) });
    logger.info('Runtime settings', { runtime: goVersion, NODE_OPTIONS: process.env.NODE_OPTIONS ?? '' });
  }

  #serveHealth(): void {
    const { health, problems, nodeManager, metrics, events, logger } = this.#parts;
    const routes = healthzRoutes({
      health,
      problems,
      nodeEligible: () => isNodeEligible(nodeManager.node),
      clock: systemClock,
      healthzTotal: metrics.proxy.healthzTotal,
      livezTotal: metrics.proxy.livezTotal,
    });
    this.#serve('proxy healthz', 'healthzBindAddress', createRouter(routes, logger), (error) => {
      const failure = new Error(`healthz server failed: ${error.message}`, { cause: error });
      events.warn('FailedToStartProxierHealthcheck', failure.message);
      this.#failure.reject(failure);
    });
  }

  async #serveMetrics(): Promise<void> {
    const { events } = this.#parts;
    this.#pages = await this.#makePages(this.#parts);
    const handler: RequestListener = (...exchange) => this.#pages?.(...exchange);
    this.#serve('metrics server', 'metricsBindAddress', handler, (error) => {
      events.warn('FailedToStartMetricServer', error.message);
      this.#failure.reject(error);
    });
  }

  async #makePages({ completed }: Start): Promise<RequestListener> {
    const { options, metrics, logger } = this.#parts;
    const { config, gates } = completed;
    const { major, minor, goVersion } = buildInfo(options.version.gitVersion);
    const startTime = await processStartTime();
    const configInUse = () => this.#live.start.completed.config;
    return metricsServerHandler({
      mode: config.mode,
      registry: metrics.registry,
      configz: () => `{"kubeproxy.config.k8s.io":${configToJSON(configInUse())}}`,
      flags: () => flagTexts(options, configInUse()),
      gates: { flagz: gates.enabled('ComponentFlagz'), statusz: gates.enabled('ComponentStatusz') },
      profiling: config.enableProfiling,
      setVerbosity: (level) => logger.setVerbosity(level),
      inspection: this.#inspection(startTime * 1000),
      version: { runtime: goVersion, binary: `${major}.${minor}` },
      startTime,
      clock: systemClock,
      logger,
    });
  }

  /** Loads the code with the first question; on many nodes none ever comes. Each generation has its own settings. */
  #inspection(startTime: number): Handler {
    let loaded: { readonly generation: number; readonly handler: Promise<Handler> } | undefined;
    const load = async () => {
      const { openInspection } = await import('./inspection.ts');
      return openInspection({
        ...this.#parts,
        ...this.#live.start,
        logger: this.#parts.logger,
        configFile: () => this.#configFile(),
        startTime,
        traffic: () => this.#openTraffic(),
      });
    };
    return async (...exchange) => {
      const { generation } = this.#live.status;
      if (loaded?.generation !== generation) loaded = { generation, handler: load() };
      const handler = await loaded.handler;
      await handler(...exchange);
    };
  }

  /** One for all generations: what it counted stays when the configuration changes. */
  async #openTraffic(): Promise<TrafficSource> {
    const { openTraffic } = await import('./traffic.ts');
    this.#traffic ??= openTraffic(this.#parts.proxiers, () => this.#live.start, this.#parts.logger);
    return this.#traffic;
  }

  #configFile(): ConfigurationStatus | undefined {
    const file = this.#configWatch?.status();
    return file && { ...file, inUse: this.#live.status };
  }

  #serve(
    name: string,
    field: AddressField,
    handler: RequestListener,
    onHardFail: (error: Error) => void,
  ): void {
    const { capacity, logger } = this.#parts;
    const options = { name, handler, onHardFail, capacity, clock: systemClock, logger };
    this.#servers.set(field, new MovableServer(options, placeOf(field, this.#live.start)));
  }

  /** Moves the servers to their new addresses, or none of them. */
  async #moveServers(to: Start, from: Start): Promise<void> {
    const moved: [AddressField, MovableServer][] = [];
    try {
      for (const [field, server] of this.#servers) {
        await server.move(placeOf(field, to));
        moved.push([field, server]);
      }
    } catch (error) {
      for (const [field, server] of moved) await server.move(placeOf(field, from));
      throw error;
    }
  }
}

/** The field of the configuration with the address of a server. */
type AddressField = 'healthzBindAddress' | 'metricsBindAddress';

function placeOf(field: AddressField, { completed }: Start): Place {
  const { config } = completed;
  return { address: config[field], hardFail: config.bindAddressHardFail };
}

/** A family is unhealthy when a change is not written for twice the sync period. */
export function healthTimeoutMs({ syncPeriod }: ProxyConfig): number {
  return 2 * toMillis(syncPeriod);
}

/** Sets the conntrack parameters; when one cannot be set, sets back those of the former configuration. */
function changeConntrack(to: Start, from: Start): void {
  try {
    applyConntrack(to);
  } catch (error) {
    try {
      applyConntrack(from);
    } catch (again) {
      from.logger.error(again, 'Former conntrack parameters cannot be restored');
    }
    throw error;
  }
}
