import type { WatchTarget } from '../kube/list-watch.ts';
import { ServerPresence } from '../kube/list-watch.ts';
import { Reflector, type ReflectorTuning } from '../kube/reflector.ts';
import type { RestClient } from '../kube/rest-client.ts';
import type { Clock } from '../lib/clock.ts';
import { createIntern } from '../lib/intern.ts';
import type { ResourceName } from '../model/objects.ts';
import type { SourceStatus, WatchStatus } from '../model/source-status.ts';
import type { Logger } from '../obs/log.ts';
import type { ObjectHandler, ObjectSource } from './source.ts';

export interface KubeSourceOptions {
  readonly client: RestClient;
  /** The URL of the API server, for people. */
  readonly location: string;
  /** Only this Node is watched. */
  readonly nodeName: string;
  /** Whether to ask for streamed lists; otherwise all lists come in pages. */
  readonly streamsLists: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly random?: () => number;
  readonly tuning?: Partial<ReflectorTuning>;
}

/** Objects from an API server. `start` may be called again for further resources. */
export function kubeSource(options: KubeSourceOptions): ObjectSource {
  return new KubeSource(options);
}

interface Running {
  stop(): void;
  status(): WatchStatus;
  readonly finished: Promise<void>;
}

class KubeSource implements ObjectSource {
  readonly #options: KubeSourceOptions;
  readonly #running = new Map<ResourceName, Running>();
  readonly #intern = createIntern();
  readonly #presence = new ServerPresence();

  constructor(options: KubeSourceOptions) {
    this.#options = options;
  }

  start(resources: readonly ResourceName[], handler: ObjectHandler): void {
    for (const resource of resources) this.#reflect(resource, handler);
  }

  async stop(): Promise<void> {
    const running = [...this.#running.values()];
    for (const reflector of running) reflector.stop();
    await Promise.all(running.map((reflector) => reflector.finished));
  }

  status(): SourceStatus {
    const watches = [...this.#running.values()].map((reflector) => reflector.status());
    return { kind: 'APIServer', location: this.#options.location, watches, errors: [] };
  }

  #reflect<R extends ResourceName>(resource: R, handler: ObjectHandler): void {
    if (this.#running.has(resource)) throw new Error(`${resource} are already being watched`);
    const { nodeName, location: _, random = Math.random, ...rest } = this.#options;
    const reflector = new Reflector({
      ...rest,
      presence: this.#presence,
      random,
      resource,
      target: watchTargets(nodeName)[resource],
      intern: this.#intern,
      sink: {
        upsert: (object, previous) => handler.upsert(resource, object, previous),
        remove: (object) => handler.remove(resource, object),
        synced: () => handler.synced(resource),
      },
    });
    this.#running.set(resource, {
      stop: () => reflector.stop(),
      status: () => reflector.status(),
      finished: reflector.run(),
    });
  }
}

/** The path of each resource, and the selectors for the objects that kube-proxy uses. */
export function watchTargets(nodeName: string): { readonly [R in ResourceName]: WatchTarget } {
  return {
    services: {
      path: '/api/v1/services',
      labelSelector: '!service.kubernetes.io/service-proxy-name',
      fieldSelector: 'spec.clusterIP!=None',
    },
    endpointSlices: {
      path: '/apis/discovery.k8s.io/v1/endpointslices',
      labelSelector: '!service.kubernetes.io/headless',
    },
    nodes: { path: '/api/v1/nodes', fieldSelector: `metadata.name=${escapeFieldValue(nodeName)}` },
    serviceCIDRs: { path: '/apis/networking.k8s.io/v1/servicecidrs' },
  };
}

/** Escapes the characters that are special in a field selector. */
function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&');
}
