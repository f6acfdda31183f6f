import assert from 'node:assert/strict';
import type { TracedConnection, TraceReport } from '../../src/trace/report.ts';
import { Host } from '../cluster/lab/host.ts';
import { Lab } from '../cluster/lab/lab.ts';
import { sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { apiService, apiSlice } from '../cluster/objects.ts';
import { ctl } from '../ctl/ctl.ts';
import { eventually } from '../eventually.ts';
import { kubeProxyctl, run } from '../program/run.ts';
import { Site } from '../program/started.ts';

const pod = '10.244.0.9';
const client = '203.0.113.5';
export const node = '192.0.2.1';
export const endpoint = '10.244.0.5';
const mute = '10.244.0.6';
/** An address of the pod to which no route leads back. */
export const stray = '10.99.0.1';
const unreachable = '10.255.0.1';
export const v6 = { pod: 'fd00:244::9', endpoint: 'fd00:244::5', node: 'fd00:2::1', clusterIP: 'fd00:96::1' };
export const podDevice = 'podveth0';
/** Longer than any connection of a test takes: a trace ends as soon as it has seen enough. */
export const patience = '120s';

/** Whether a table of a trace is in the kernel. */
export function isTracing(): boolean {
  return sh('nft list tables').includes('kube-proxyctl-trace-');
}

/** Runs `kube-proxyctl trace` and, as soon as it traces, the traffic. Returns what it prints. */
export async function traced(args: string, traffic: () => Promise<unknown>, code: number): Promise<string> {
  const running = run(kubeProxyctl, ['trace', '--for', patience, ...args.split(' ')], {
    timeout: paced(180_000),
  });
  await eventually('a trace', isTracing);
  await traffic();
  const outcome = await running;
  assert.equal(outcome.code, code, `${outcome.stdout}${outcome.stderr}`);
  assert.ok(!isTracing(), 'the table is gone');
  return outcome.stdout;
}

/** Traces one connection, and returns it. */
export async function story(
  args: string,
  traffic: () => Promise<unknown>,
  code = 2,
): Promise<TracedConnection> {
  const report = JSON.parse(await traced(`${args} --packets 1 -o json`, traffic, code)) as TraceReport;
  assert.equal(report.connections.length, 1);
  const [connection] = report.connections;
  assert.ok(connection);
  return connection;
}

/** Adds rules of another program for the time of some work. */
export async function withFirewall<T>(rules: string, work: () => Promise<T>): Promise<T> {
  sh('nft -f -', `table inet firewall {\n${rules}\n}\n`);
  try {
    return await work();
  } finally {
    sh('nft delete table inet firewall');
  }
}

/** A chain of another program with one rule. */
export function chain(hook: string, rule: string): string {
  return `chain ${hook} { type filter hook ${hook} priority 0; policy accept; ${rule}; }`;
}

/** The load balancer IP that belongs to a cluster IP here. */
export function balancer(clusterIP: string): string {
  return clusterIP.replace(/^10\.96\.0\./, '198.18.0.');
}

export const nodePort = 30_080;
const nodePorts = { type: 'NodePort', externalTrafficPolicy: 'Cluster' };
const loadBalancer = {
  type: 'LoadBalancer',
  externalTrafficPolicy: 'Cluster',
  allocateLoadBalancerNodePorts: false,
};

/**
 * A node with the real program in one mode, a pod, an endpoint, an endpoint that never answers and a client outside. The
 * Services shop/web, ranged, local, mute, gone, host and ported have the cluster IPs 10.96.0.1 to 10.96.0.7, shop/six an IPv6 one.
 */
export class TraceLab {
  readonly site: Site;
  readonly #lab: Lab;
  readonly #self: Host;

  static async build(namespace: string, mode: string): Promise<TraceLab> {
    const lab = Lab.build(namespace, {
      nodeAddresses: [node, v6.node],
      hosts: [
        { name: 'pod', addresses: [pod, v6.pod], device: podDevice },
        { name: 'A', addresses: [endpoint, v6.endpoint] },
        { name: 'mute', addresses: [mute] },
        { name: 'outside', addresses: [client] },
      ],
      defaultRoute: 'outside',
    });
    const built = new TraceLab(await Site.open(), lab, new Host('node', namespace));
    try {
      await built.#prepare(mode);
    } catch (error) {
      await built.close();
      throw error;
    }
    return built;
  }

  private constructor(site: Site, lab: Lab, self: Host) {
    this.site = site;
    this.#lab = lab;
    this.#self = self;
  }

  host(name: 'pod' | 'A' | 'mute' | 'outside' | 'node'): Host {
    return name === 'node' ? this.#self : this.#lab.host(name);
  }

  /** Makes one connection to port 80 of an address, and waits for an answer as long as that takes at most. */
  connect(from: 'pod' | 'outside' | 'node', address: string, source?: string): Promise<unknown> {
    const question = { address, port: 80, timeoutMs: paced(1_000) };
    return this.host(from).ask({ ...question, ...(source !== undefined && { source }) });
  }

  async close(): Promise<void> {
    await this.site.close();
    this.#self.close();
    this.#lab.close();
  }

  async #prepare(mode: string): Promise<void> {
    await this.host('A').serve(8080);
    await this.host('A').serve(5353, 'udp', endpoint);
    await this.host('node').serve(8080);
    const silent = `table inet mute {\n${chain('input', 'drop')}\n}\n`;
    sh(`ip netns exec ${this.host('mute').namespace} nft -f -`, silent);
    this.host('pod').ip('addr', 'add', `${stray}/32`, 'dev', 'eth0');
    sh('ip route add unreachable 10.255.0.0/16');
    this.#putServices();
    const proxy = await this.site.start(this.site.writeConfig({ mode, clusterCIDR: '10.244.0.0/16' }));
    await proxy.serves('http://127.0.0.1:10249');
    const isServed = async () => (await ctl('services', 'shop/six')).code === 0;
    await eventually('the Services', isServed, { everyMs: 500 });
    await eventually('rules that agree', async () => (await ctl('diff')).code === 0, { everyMs: 500 });
  }

  #putServices(): void {
    const { api } = this.site;
    this.#put('web', '10.96.0.1', [endpoint]);
    const ranges = { loadBalancerSourceRanges: ['198.51.100.0/24'] };
    this.#put('ranged', '10.96.0.2', [endpoint], { ...loadBalancer, ...ranges });
    const local = { externalTrafficPolicy: 'Local', healthCheckNodePort: 31_000 };
    this.#put('local', '10.96.0.3', [], { ...loadBalancer, ...local });
    const slice = apiSlice('local', [endpoint]);
    const elsewhere = (slice.endpoints as object[]).map((one) => ({ ...one, nodeName: 'node-b' }));
    api.put('endpointSlices', { ...slice, endpoints: elsewhere });
    this.#put('mute', '10.96.0.4', [mute]);
    this.#put('gone', '10.96.0.5', [unreachable]);
    this.#put('host', '10.96.0.6', [node]);
    const ports = [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080, nodePort }];
    this.#put('ported', '10.96.0.7', [endpoint], { ...nodePorts, ports });
    const { spec, ...rest } = apiService('six', 80, { clusterIP: v6.clusterIP });
    api.put('services', { ...rest, spec: { ...(spec as object), ipFamilies: ['IPv6'] } });
    api.put('endpointSlices', { ...apiSlice('six', [v6.endpoint]), addressType: 'IPv6' });
  }

  /** A Service shop/NAME with further fields of its spec, and a slice with these endpoints. */
  #put(name: string, clusterIP: string, addresses: readonly string[], spec: object = {}): void {
    const { spec: plain, ...rest } = apiService(name, 80, { clusterIP });
    const ingress =
      'type' in spec && spec.type === loadBalancer.type ? [{ ip: balancer(clusterIP), ipMode: 'VIP' }] : [];
    const status = { loadBalancer: { ingress } };
    this.site.api.put('services', { ...rest, spec: { ...(plain as object), ...spec }, status });
    this.site.api.put('endpointSlices', apiSlice(name, addresses));
  }
}
