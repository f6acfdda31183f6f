import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../src/lib/thrown.ts';
import { apiServer, loadBalancers, nodeAddress, nodes, outsideClient } from './addresses.ts';
import type { Pki } from './pki.ts';

const finalizer = 'service.kubernetes.io/load-balancer-cleanup';
const healthPort = 10_256;

interface Service {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly finalizers?: readonly string[];
    readonly deletionTimestamp?: string;
  };
  readonly spec: {
    readonly type: string;
    readonly loadBalancerClass?: string;
    readonly externalTrafficPolicy?: string;
    readonly healthCheckNodePort?: number;
    readonly sessionAffinity?: string;
  };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip: string }[] } };
}

/**
 * Does what a cloud does for Services of type LoadBalancer: gives each an address and routes it, in the namespace of the
 * control plane, to the nodes whose kube-proxy answers the health check with 200. The kernel spreads connections over
 * these nodes.
 */
export class LoadBalancer {
  readonly #log: string;
  readonly #agent: Agent;
  /** Addresses by UID of the Service. */
  readonly #addresses = new Map<string, string>();
  readonly #routes = new Map<string, readonly string[]>();

  constructor(pki: Pki, log: string) {
    this.#log = log;
    this.#agent = new Agent({ ca: readFileSync(pki.path('ca.crt')), keepAlive: true });
  }

  /** Looks at all Services, once a second, until the process ends. */
  start(): void {
    const turn = async (): Promise<void> => {
      try {
        await this.#look();
      } catch (error) {
        this.#write(messageOf(error));
      }
      setTimeout(turn, 1_000).unref();
    };
    void turn();
  }

  async #look(): Promise<void> {
    const { items } = (await this.#call('GET', '/api/v1/services')) as { items: readonly Service[] };
    const served = new Set<string>();
    for (const service of items) {
      if (wantsLoadBalancer(service)) {
        served.add(service.metadata.uid);
        await this.#serve(service);
      } else await this.#release(service);
    }
    for (const uid of this.#addresses.keys()) if (!served.has(uid)) this.#forget(uid);
  }

  async #serve(service: Service): Promise<void> {
    const { uid, finalizers = [] } = service.metadata;
    const { spec } = service;
    const known = service.status?.loadBalancer?.ingress?.[0]?.ip;
    if (!finalizers.includes(finalizer))
      await this.#patch(service, { finalizers: [...finalizers, finalizer] });
    const address = this.#addresses.get(uid) ?? known ?? this.#freeAddress();
    this.#addresses.set(uid, address);
    const port = spec.externalTrafficPolicy === 'Local' ? (spec.healthCheckNodePort ?? 0) : healthPort;
    const answers = await Promise.all(nodes.map((node) => isHealthy(nodeAddress(node).v4, port)));
    const healthy = nodes.filter((_, i) => answers[i]).map((node) => nodeAddress(node).v4);
    // With session affinity one node gets all connections, as a proxy knows only its own clients.
    this.#route(address, spec.sessionAffinity === 'ClientIP' ? healthy.slice(0, 1) : healthy);
    if (known === undefined) await this.#patchStatus(service, [{ ip: address }]);
  }

  async #release(service: Service): Promise<void> {
    const { uid, finalizers = [] } = service.metadata;
    if (!finalizers.includes(finalizer)) return;
    if (service.status?.loadBalancer?.ingress) await this.#patchStatus(service, null);
    this.#forget(uid);
    await this.#patch(service, { finalizers: finalizers.filter((each) => each !== finalizer) });
  }

  #forget(uid: string): void {
    const address = this.#addresses.get(uid);
    if (address === undefined) return;
    this.#route(address, []);
    this.#addresses.delete(uid);
    this.#routes.delete(address);
  }

  #route(address: string, targets: readonly string[]): void {
    if (isDeepStrictEqual(this.#routes.get(address) ?? [], targets)) return;
    this.#routes.set(address, targets);
    const hops = targets.flatMap((target) => ['nexthop', 'via', target]);
    const args =
      targets.length > 0
        ? ['route', 'replace', `${address}/32`, 'src', outsideClient, ...hops]
        : // The route of the whole network remains, which leads nowhere.
          ['route', 'del', `${address}/32`];
    const { stderr } = spawnSync('ip', args, { encoding: 'utf8' });
    this.#write(`${address} → ${targets.join(' ') || 'nobody'} ${stderr}`);
  }

  #freeAddress(): string {
    const used = new Set(this.#addresses.values());
    for (let i = 10; i < 250; i++) {
      const address = `${loadBalancers.prefix}.${i}`;
      if (!used.has(address)) return address;
    }
    throw new Error('no address is left for another load balancer');
  }

  #patch(service: Service, metadata: object): Promise<unknown> {
    return this.#call('PATCH', pathOf(service), { metadata });
  }

  #patchStatus(service: Service, ingress: readonly { ip: string }[] | null): Promise<unknown> {
    return this.#call('PATCH', `${pathOf(service)}/status`, { status: { loadBalancer: { ingress } } });
  }

  #call(method: string, path: string, body?: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const headers = { Authorization: 'Bearer admin', 'Content-Type': 'application/merge-patch+json' };
      const call = request(`${apiServer}${path}`, { method, headers, agent: this.#agent, timeout: 10_000 });
      call.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => {
          if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`));
        });
      });
      call.on('error', reject);
      call.on('timeout', () => call.destroy(new Error(`${method} ${path}: no answer`)));
      call.end(body && JSON.stringify(body));
    });
  }

  #write(line: string): void {
    appendFileSync(this.#log, `${new Date().toISOString()} ${line}\n`);
  }
}

function wantsLoadBalancer({ metadata, spec }: Service): boolean {
  return spec.type === 'LoadBalancer' && !metadata.deletionTimestamp && !spec.loadBalancerClass;
}

function pathOf({ metadata: { namespace, name } }: Service): string {
  return `/api/v1/namespaces/${namespace}/services/${name}`;
}

async function isHealthy(address: string, port: number): Promise<boolean> {
  try {
    const response = await fetch(`http://${address}:${port}/healthz`, { signal: AbortSignal.timeout(1_000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
