import { hostname } from 'node:os';
import { buildInfo } from '../cli/version.ts';
import { Problems } from '../health/problems.ts';
import { ProxyHealth } from '../health/proxy-health.ts';
import { Capacity } from '../http/capacity.ts';
import { Journal } from '../inspect/journal.ts';
import { EventRecorder } from '../kube/events/recorder.ts';
import { systemClock } from '../lib/clock.ts';
import { product, productText } from '../lib/product.ts';
import { nodeProblems } from '../model/node-eligibility.ts';
import { connectedSamples, sourceProblems, staleSamples } from '../model/source-status.ts';
import type { RootLogger } from '../obs/klog.ts';
import { NodeEvents } from './events.ts';
import { applyConntrack } from './kernel-settings.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createProxiers } from './proxiers.ts';
import { healthTimeoutMs, ProxyServer } from './proxy-server.ts';
import { type Connected, connectAndLoadNode, describeNode, type StartInput } from './start.ts';

const defaultModeNote =
  'No proxy mode is configured, so iptables is used. From Kubernetes 1.40 the default is nftables: ' +
  'set mode to "nftables" to move now, or to "iptables" to stay.';

/** Makes everything ready for the first sync, in upstream's order. Throws the reason when the proxy cannot start. */
export async function buildServer(input: StartInput & { readonly logger: RootLogger }): Promise<ProxyServer> {
  const { options, completed, mode, logger } = input;
  const { config, gates } = completed;
  const journal = new Journal(systemClock);
  const capacity = new Capacity(systemClock);
  const metrics = createMetrics(mode, gates, buildInfo(options.version.gitVersion), logger);
  const connected = await connectAndLoadNode(input, metrics.restClient);
  const recorder = new EventRecorder({
    send: connected.cluster.sendEvent,
    clock: systemClock,
    hostName: hostname(),
    logger,
    random: Math.random,
  });
  journal.note({ event: 'Start', text: startText(connected) });
  const events = new NodeEvents(connected.nodeName, (event) => recorder.event(event));
  warnOfMode(input, events);
  const health = new ProxyHealth(systemClock, healthTimeoutMs(config));
  const problems = collectProblems(connected, health, metrics);
  exposeWatches(connected, metrics);
  applyConntrack(input);
  const start = describeNode(connected, await mode.supportedFamilies(logger));
  const proxiers = await createProxiers({
    ...start,
    metrics: metrics.proxy,
    health,
    problems,
    recorder,
    journal,
    capacity,
  });
  return new ProxyServer({
    ...start,
    logger,
    recorder,
    events,
    health,
    problems,
    journal,
    metrics,
    proxiers,
    capacity,
  });
}

function startText({ options, mode, nodeName }: Connected): string {
  return `${productText(product)}, for Kubernetes ${options.version.gitVersion}, in ${mode.name} mode on node ${nodeName}, process ${process.pid}`;
}

/** Starts the list of problems with those that exist in every mode. */
function collectProblems(
  { cluster, nodeManager }: Connected,
  health: ProxyHealth,
  metrics: Metrics,
): Problems {
  const problems = new Problems();
  problems.from(() => health.problems());
  problems.from(() => nodeProblems(nodeManager.node));
  problems.from(() => sourceProblems(cluster.source.status()));
  metrics.proxy.problems.readFrom(() => problems.samples());
  return problems;
}

function exposeWatches({ cluster }: Connected, { proxy }: Metrics): void {
  const watches = () => cluster.source.status().watches;
  proxy.watchConnected.readFrom(() => connectedSamples(watches()));
  proxy.watchStale.readFrom(() => staleSamples(watches(), systemClock.now()));
}

/** Warns, in the log and by an event, about a mode that was not chosen or is deprecated. */
function warnOfMode({ options, mode, completed, logger }: StartInput, events: NodeEvents): void {
  const { deprecation } = mode;
  const warn = (eventReason: string, note: string) => {
    logger.error(undefined, note);
    events.warn(eventReason, note);
  };
  if (completed.modeDefaulted) warn('KubeProxyDefaultMode', defaultModeNote);
  if (deprecation) warn(deprecation.eventReason, deprecation.note);
  if (options.resetDeparted !== 'off' && !mode.resetsDeparted) {
    logger.error(undefined, 'Flag --reset-departed has no effect in this proxy mode', { mode: mode.name });
  }
  if (options.fastPath !== 'off' && mode.hasFastPath && options.serviceMetrics.includes('bytes')) {
    logger.error(undefined, 'Metrics of bytes miss packets on the fast path');
  }
  if (options.fastPath !== 'off' && !mode.hasFastPath) {
    logger.error(undefined, 'Flag --nftables-fast-path has no effect in this proxy mode', {
      mode: mode.name,
    });
  }
}
