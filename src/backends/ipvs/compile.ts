import { formatVirtualServer, type VirtualServer } from '../../kernel/ipvs/objects.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Protocol } from '../../model/objects.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { rangeOfNode } from '../../plan/source-ranges.ts';
import type { InterfaceFacts } from './interface-facts.ts';
import { canonicalSetEntry, type SetName } from './sets.ts';
import type { IpvsSettings } from './settings.ts';
import { virtualServer } from './virtual-server.ts';

/** A virtual server that a service port wants, and the endpoints behind it. */
export interface WantedServer {
  readonly server: VirtualServer;
  /** Cluster IPs outrank external addresses when two services claim the same. */
  readonly isClusterIP: boolean;
  /** A list of the plan itself: thousands of services cost no copies. */
  readonly endpoints: readonly Endpoint[];
}

/** All that one service port wants. What several of them want alike is counted in DesiredState. */
export interface Fragment {
  /** By `formatVirtualServer`. */
  readonly servers: ReadonlyMap<string, WantedServer>;
  /** Canonical entries. */
  readonly entries: readonly { readonly set: SetName; readonly entry: string }[];
  /** To be bound to the device. */
  readonly addresses: readonly string[];
  /** Rules of KUBE-IPVS-OUT-FILTER: this node may not reach the load balancer. */
  readonly outFilter: readonly string[];
}

const nodePortSets: Readonly<Record<Protocol, { readonly all: SetName; readonly local: SetName }>> = {
  TCP: { all: 'KUBE-NODE-PORT-TCP', local: 'KUBE-NODE-PORT-LOCAL-TCP' },
  UDP: { all: 'KUBE-NODE-PORT-UDP', local: 'KUBE-NODE-PORT-LOCAL-UDP' },
  SCTP: { all: 'KUBE-NODE-PORT-SCTP-HASH', local: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH' },
};

const sourceRangeSet: SetName = 'KUBE-LOAD-BALANCER-SOURCE-CIDR';

/** What a plan wants. Pure: equal arguments give equal fragments. */
export function compilePlan(plan: ServicePlan, settings: IpvsSettings, facts: InterfaceFacts): Fragment {
  const compiler = new Compiler(plan, settings, facts);
  compiler.loopBack();
  compiler.clusterIP();
  compiler.externalIPs();
  compiler.loadBalancerVIPs();
  compiler.nodePort();
  compiler.healthCheckNodePort();
  return compiler.fragment;
}

class Compiler {
  readonly fragment: {
    readonly servers: Map<string, WantedServer>;
    readonly entries: { set: SetName; entry: string }[];
    readonly addresses: string[];
    readonly outFilter: string[];
  } = { servers: new Map(), entries: [], addresses: [], outFilter: [] };
  readonly #plan: ServicePlan;
  readonly #settings: IpvsSettings;
  readonly #facts: InterfaceFacts;

  constructor(plan: ServicePlan, settings: IpvsSettings, facts: InterfaceFacts) {
    this.#plan = plan;
    this.#settings = settings;
    this.#facts = facts;
  }

  /** A pod may reach itself through the service, ready or not: the answer has to come back through this node. */
  loopBack(): void {
    const { port, endpoints } = this.#plan;
    for (const { ip, port: number, isLocal } of endpoints) {
      if (isLocal) this.#entry('KUBE-LOOP-BACK', addressPortSource(ip, port.protocol, number, ip));
    }
  }

  clusterIP(): void {
    const { port } = this.#plan;
    if (port.clusterIP === '') return;
    this.#entry('KUBE-CLUSTER-IP', addressPort(port.clusterIP, port.protocol, port.port));
    this.#server(port.clusterIP, port.port, true);
    this.fragment.addresses.push(port.clusterIP);
  }

  externalIPs(): void {
    const { port, externalIPs } = this.#plan;
    const set = port.externalPolicyLocal ? 'KUBE-EXTERNAL-IP-LOCAL' : 'KUBE-EXTERNAL-IP';
    for (const ip of externalIPs) {
      this.#entry(set, addressPort(ip, port.protocol, port.port));
      this.#externalServer(ip);
    }
  }

  loadBalancerVIPs(): void {
    const { port } = this.#plan;
    for (const vip of port.loadBalancerVIPs) {
      const entry = addressPort(vip, port.protocol, port.port);
      this.#entry('KUBE-LOAD-BALANCER', entry);
      if (port.externalPolicyLocal) this.#entry('KUBE-LOAD-BALANCER-LOCAL', entry);
      if (port.sourceRanges.length > 0) this.#sourceRanges(vip);
      this.#externalServer(vip);
    }
  }

  nodePort(): void {
    const { port } = this.#plan;
    if (port.nodePort === 0) return;
    const { all, local } = nodePortSets[port.protocol];
    for (const ip of this.#facts.nodePortIPs) {
      const entry =
        port.protocol === 'SCTP' ? addressPort(ip, port.protocol, port.nodePort) : `${port.nodePort}`;
      this.#entry(all, entry);
      if (port.externalPolicyLocal) this.#entry(local, entry);
      this.#server(ip, port.nodePort, false);
    }
  }

  /**
   * Differs from upstream (health-check-without-node-ports), which leaves the port closed while there is no address
   * to serve node ports on.
   */
  healthCheckNodePort(): void {
    const { healthCheckNodePort } = this.#plan.port;
    if (healthCheckNodePort !== 0) this.#entry('KUBE-HEALTH-CHECK-NODE-PORT', `${healthCheckNodePort}`);
  }

  /** Only sources in the ranges may come; the node itself sends from the VIP, because that is a local address. */
  #sourceRanges(vip: string): void {
    const { protocol, port, sourceRanges } = this.#plan.port;
    this.#entry('KUBE-LOAD-BALANCER-FW', addressPort(vip, protocol, port));
    for (const range of sourceRanges) {
      const entry = addressPortSource(vip, protocol, port, range);
      // Differs from upstream (canonical-entries): a range of one address is listed without its prefix length, and
      // would be deleted and added at every sync if texts were compared as they come.
      this.#entry(sourceRangeSet, canonicalSetEntry(sourceRangeSet, entry));
    }
    if (rangeOfNode(this.#plan.port, this.#settings.nodeIP) !== undefined) {
      this.#entry('KUBE-LOAD-BALANCER-SOURCE-IP', addressPortSource(vip, protocol, port, vip));
    } else {
      const match = `--vaddr ${vip} --vproto ${protocol.toLowerCase()} --vport ${port}`;
      this.fragment.outFilter.push(`-s ${vip} -m ipvs ${match} -j DROP`);
    }
  }

  /** What another interface has is local already, and ours must not take it along when it goes. */
  #externalServer(address: string): void {
    this.#server(address, this.#plan.port.port, false);
    if (!this.#facts.addresses.has(address)) this.fragment.addresses.push(address);
  }

  #server(address: string, port: number, isClusterIP: boolean): void {
    const server = virtualServer(this.#settings, address, port, this.#plan.port);
    const key = formatVirtualServer(server);
    if (this.fragment.servers.has(key)) return;
    const endpoints = isClusterIP ? internalEndpoints(this.#plan) : externalEndpoints(this.#plan);
    this.fragment.servers.set(key, { server, isClusterIP, endpoints });
  }

  #entry(set: SetName, entry: string): void {
    this.fragment.entries.push({ set, entry });
  }
}

/**
 * Differs from upstream (strict-internal-policy), which falls back to endpoints elsewhere when the service has an
 * external address as well: policy Local keeps cluster IP traffic on this node, or refuses it.
 */
function internalEndpoints({ port, local, cluster }: ServicePlan): readonly Endpoint[] {
  return port.internalPolicyLocal ? local : cluster;
}

/** In this mode outside traffic under policy Local goes elsewhere rather than nowhere. */
function externalEndpoints({ port, local, cluster }: ServicePlan): readonly Endpoint[] {
  return port.externalPolicyLocal && local.length > 0 ? local : cluster;
}

/** `address,protocol:port` */
function addressPort(address: string, protocol: Protocol, port: number): string {
  return `${address},${protocol.toLowerCase()}:${port}`;
}

/** `address,protocol:port,source`, where the source is an address or a CIDR. */
function addressPortSource(address: string, protocol: Protocol, port: number, source: string): string {
  return `${addressPort(address, protocol, port)},${source}`;
}
