import type { Options } from '../cli/options.ts';
import { buildInfo } from '../cli/version.ts';
import type { ProxyConfig } from '../config/types.ts';
import { clusterAccess } from '../kube/access.ts';
import { type SendEvent, sendOver } from '../kube/events/delivery.ts';
import { type ClientSettings, createRestClient, type HttpRestClient } from '../kube/http-client.ts';
import type { RestMetrics } from '../kube/rest-metrics.ts';
import { systemClock } from '../lib/clock.ts';
import type { Logger } from '../obs/log.ts';
import { kubeSource } from '../sources/kube.ts';
import type { ObjectSource } from '../sources/source.ts';
import type { Completed } from './complete.ts';

/** The source of objects, and the way to send events. */
export interface Cluster {
  readonly source: ObjectSource;
  readonly sendEvent: SendEvent;
  /** Talks to the API server as another configuration says, from the next request on. Throws when it cannot. */
  readonly configureClient: (config: ProxyConfig) => void;
  /** False for manifests: an object that they lack now will not arrive soon. */
  readonly waits: boolean;
}

/** Connects to the API server, or reads the manifests of `--manifests`. Throws when that fails. */
export async function openCluster(
  options: Options,
  { config, gates }: Completed,
  nodeName: string,
  metrics: RestMetrics,
  logger: Logger,
): Promise<Cluster> {
  if (options.manifests !== '') return openManifests(options.manifests, nodeName, logger);
  const { client, location } = await connect(options, config, metrics, logger);
  // Not by default: pages cost the API server half as much (decision 0011).
  const streamsLists = gates.isTurnedOn('WatchListClient');
  const source = kubeSource({ client, location, nodeName, streamsLists, clock: systemClock, logger });
  const configureClient = (changed: ProxyConfig) => client.configure(clientSettings(changed));
  return { source, sendEvent: sendOver(client), configureClient, waits: true };
}

async function openManifests(path: string, nodeName: string, logger: Logger): Promise<Cluster> {
  const { manifestSource } = await import('../sources/manifests.ts');
  const source = await manifestSource({ path, nodeName, clock: systemClock, logger });
  const sendEvent: SendEvent = async ({ body }) => {
    logger.v(2).info('Event', { event: body });
    return { status: 201 };
  };
  return { source, sendEvent, configureClient: () => {}, waits: false };
}

async function connect(
  options: Options,
  config: ProxyConfig,
  metrics: RestMetrics,
  logger: Logger,
): Promise<{ readonly client: HttpRestClient; readonly location: string }> {
  const { kubeconfig } = config.clientConnection;
  const access = await clusterAccess({
    kubeconfig,
    master: options.master,
    env: process.env,
    clock: systemClock,
    logger,
  });
  const { gitVersion, platform } = buildInfo(options.version.gitVersion);
  const client = createRestClient({
    access,
    userAgent: `kube-proxy/${gitVersion} (${platform}) kube-proxy-ts`,
    ...clientSettings(config),
    clock: systemClock,
    logger,
    metrics,
  });
  // Not `href`, which has user and password.
  return { client, location: `${access.server.origin}${access.server.pathname}`.replace(/\/$/, '') };
}

function clientSettings({ clientConnection }: ProxyConfig): ClientSettings {
  const { qps, burst, contentType, acceptContentTypes } = clientConnection;
  return { qps, burst, contentTypes: { accept: acceptContentTypes, contentType } };
}
