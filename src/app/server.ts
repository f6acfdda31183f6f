import { hostname } from 'node:os';
import type { Mode } from '../backends/mode.ts';
import type { Options } from '../cli/options.ts';
import { buildInfo } from '../cli/version.ts';
import { ProxyHealth } from '../health/proxy-health.ts';
import { tuneConntrack } from '../kernel/conntrack-tuning.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { EventRecorder } from '../kube/events/recorder.ts';
import { systemClock } from '../lib/clock.ts';
import { toMillis } from '../lib/duration.ts';
import { messageOf } from '../lib/thrown.ts';
import type { RootLogger } from '../obs/klog.ts';
import type { Logger } from '../obs/log.ts';
import type { Completed } from './complete.ts';
import { NodeEvents } from './events.ts';
import { meetNode } from './known-node.ts';
import { createMetrics } from './metrics.ts';
import { loadMode } from './modes.ts';
import { setUpNode } from './node-setup.ts';
import { createProxiers } from './proxiers.ts';
import { ProxyServer } from './proxy-server.ts';

const defaultModeNote =
  'No proxy mode is configured, so iptables is used. From Kubernetes 1.40 the default is nftables: ' +
  'set mode to "nftables" to move now, or to "iptables" to stay.';

/** Does all that is needed before the first packet can be served, in upstream's order; throws what stands in the way. */
export async function buildServer(
  options: Options,
  completed: Completed,
  logger: RootLogger,
): Promise<ProxyServer> {
  const { config, gates } = completed;
  const mode = await loadMode(config.mode);
  const metrics = createMetrics(mode, gates, buildInfo(options.version.gitVersion), logger);
  const { nodeName, cluster, node, start, addresses } = await meetNode(
    options,
    completed,
    metrics.restClient,
    logger,
  );
  const recorder = new EventRecorder({
    send: cluster.sendEvent,
    clock: systemClock,
    hostName: hostname(),
    logger,
    random: Math.random,
  });
  const events = new NodeEvents(nodeName, (event) => recorder.event(event));
  warnOfMode(mode, completed.modeDefaulted, events, logger);
  const health =
    config.healthzBindAddress === ''
      ? undefined
      : new ProxyHealth(systemClock, 2 * toMillis(config.syncPeriod));
  tune(mode, completed, logger);
  const setup = setUpNode(config, start, addresses, await mode.supportedFamilies(logger), logger);
  const proxiers = await createProxiers({
    completed,
    mode,
    setup,
    nodeName,
    metrics: metrics.proxy,
    health,
    recorder,
    logger,
  });
  return new ProxyServer({
    options,
    completed,
    cluster,
    mode,
    setup,
    nodeName,
    node,
    recorder,
    events,
    health,
    metrics,
    proxiers,
    logger,
  });
}

/** Warns, in the log and by an event, about a mode that was not chosen or is deprecated. */
function warnOfMode({ deprecation }: Mode, modeDefaulted: boolean, events: NodeEvents, logger: Logger): void {
  const warn = (eventReason: string, note: string) => {
    logger.error(undefined, note);
    events.warn(eventReason, note);
  };
  if (modeDefaulted) warn('KubeProxyDefaultMode', defaultModeNote);
  if (deprecation) warn(deprecation.eventReason, deprecation.note);
}

/** Sets the conntrack parameters. Throws when that fails and the mode needs them. */
function tune(mode: Mode, { config }: Completed, logger: RootLogger): void {
  try {
    tuneConntrack(config.linux.conntrack, systemFiles, logger);
  } catch (error) {
    const reason = messageOf(error);
    if (mode.toleratesConntrackFailure) {
      logger.info('Conntrack parameters are left as they are', { reason });
      return;
    }
    throw new Error(`could not set conntrack parameters from kube-proxy configuration: ${reason}`, {
      cause: error,
    });
  }
}
