import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ApiServer, startApiServer } from '../../test/cluster/apiserver/server.ts';
import type { RawObject } from '../../test/cluster/apiserver/store.ts';
import type { Size } from '../report/measurement.ts';

export type { Size };

/** The node's address, where a server listens, and where connections are refused; all on the loopback device. */
export const nodeIP = '192.0.2.1';
export const listenerIP = '192.0.2.2';
export const refusingNetwork = '192.0.2.64/26';
export const endpointPort = 8080;
const firstRefusing = 64;
const mostRefusing = 60;

/** A mode that has its own section in the configuration. */
export type Mode = 'iptables' | 'ipvs' | 'nftables';

export interface ClusterOptions {
  readonly mode: Mode;
  readonly protocol?: 'TCP' | 'UDP';
}

/** The endpoints of a service: pods that do not exist, addresses that refuse connections, or only the listener. */
export type Endpoints = 'silent' | 'refusing' | 'one-refusing' | 'listener';

/** An API server full of plain services, and the configuration with which a kube-proxy connects to it. */
export class Cluster {
  readonly config: string;
  readonly size: Size;
  readonly #api: ApiServer;
  readonly #directory: string;
  readonly #protocol: string;
  #generation = 0;

  /** All services are `silent` except the last, which has the listener. */
  static async open(size: Size, { mode, protocol = 'TCP' }: ClusterOptions): Promise<Cluster> {
    const api = await startApiServer();
    const cluster = new Cluster(api, size, mode, protocol);
    api.put('nodes', {
      metadata: { name: 'node-a' },
      status: { addresses: [{ type: 'InternalIP', address: nodeIP }] },
    });
    for (let i = 0; i < size.services; i++) {
      api.put('services', serviceObject(i, protocol));
      cluster.set(i, i === size.services - 1 ? 'listener' : 'silent');
    }
    return cluster;
  }

  private constructor(api: ApiServer, size: Size, mode: Mode, protocol: string) {
    this.#api = api;
    this.size = size;
    this.#protocol = protocol;
    this.#directory = mkdtempSync(join(tmpdir(), 'kpt-bench-'));
    const kubeconfig = join(this.#directory, 'kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(kubeconfigFor(api.url)));
    this.config = join(this.#directory, 'config.yaml');
    writeFileSync(this.config, JSON.stringify(configFor(kubeconfig, mode)));
  }

  /** Changes the endpoints of a service, in one event. */
  set(index: number, who: Endpoints): void {
    const count = who === 'listener' || who === 'one-refusing' ? 1 : this.size.endpoints;
    const addresses = Array.from({ length: count }, (_, i) => this.#address(index, i, who));
    const generation = ++this.#generation;
    this.#api.put('endpointSlices', sliceObject(index, addresses, generation, this.#protocol));
  }

  /** Adds a Service with a health check node port. */
  addHealthCheckPort(port: number): void {
    const spec = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: port };
    this.#api.put('services', serviceObject(this.size.services, this.#protocol, spec));
    this.set(this.size.services, 'silent');
  }

  /** Sets the endpoints of a Service for UDP, and adds it if there is none yet. */
  setDatagramEndpoints(addresses: readonly string[]): void {
    const index = this.size.services + 1;
    this.#api.put('services', serviceObject(index, 'UDP'));
    this.#api.put('endpointSlices', sliceObject(index, addresses, ++this.#generation, 'UDP'));
  }

  async close(): Promise<void> {
    await this.#api.close();
    rmSync(this.#directory, { recursive: true });
  }

  #address(index: number, i: number, who: Endpoints): string {
    if (who === 'listener') return listenerIP;
    if (who === 'silent') return endpointIP(index, i, this.size);
    return `192.0.2.${firstRefusing + 1 + (i % mostRefusing)}`;
  }
}

/** The cluster IP of the service with this number. */
export function serviceIP(index: number): string {
  return address(96, index + 1);
}

export function serviceName(index: number): { readonly namespace: string; readonly name: string } {
  return { namespace: `team-${index % 100}`, name: `service-${index}` };
}

/** A pod that exists on no machine. */
export function endpointIP(index: number, i: number, { endpoints }: Size): string {
  return address(128, index * endpoints + i);
}

function address(second: number, number: number): string {
  return [10, second + (number >> 16), (number >> 8) & 255, number & 255].join('.');
}

function serviceObject(index: number, protocol: string, spec: object = {}): RawObject {
  const clusterIP = serviceIP(index);
  const { namespace, name } = serviceName(index);
  return {
    metadata: { namespace, name, labels: { app: name } },
    spec: {
      type: 'ClusterIP',
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      selector: { app: name },
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ports: [{ name: 'http', port: 80, protocol, targetPort: endpointPort }],
      ...spec,
    },
    status: { loadBalancer: {} },
  };
}

function sliceObject(
  index: number,
  addresses: readonly string[],
  generation: number,
  protocol: string,
): RawObject {
  const { namespace, name } = serviceName(index);
  return {
    metadata: {
      namespace,
      name: `${name}-abcde`,
      generation,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'IPv4',
    endpoints: addresses.map((ip, i) => ({
      addresses: [ip],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${(index + i) % 100}`,
      targetRef: { kind: 'Pod', namespace, name: `${name}-${i}` },
    })),
    ports: [{ name: 'http', port: endpointPort, protocol }],
  };
}

function kubeconfigFor(server: string): unknown {
  return {
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: '' } }],
    clusters: [{ name: 'bench', cluster: { server } }],
  };
}

function configFor(kubeconfig: string, mode: Mode): unknown {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode,
    hostnameOverride: 'node-a',
    clientConnection: { kubeconfig },
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    [mode]: { minSyncPeriod: '1ms' },
  };
}
