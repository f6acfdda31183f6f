import { formatVirtualServer, type VirtualServer } from '../../kernel/ipvs/objects.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import type { Protocol } from '../../model/objects.ts';
import { type Frontend, frontendsOf } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { rangeOfNode } from '../../plan/source-ranges.ts';
import type { InterfaceFacts } from './interface-facts.ts';
import { canonicalSetEntry, type IpsetName } from './sets.ts';
import type { IpvsSettings } from './settings.ts';
import { virtualServer } from './virtual-server.ts';

/** A virtual server that a service port wants, and the endpoints behind it. */
export interface WantedServer {
  readonly server: VirtualServer;
  /** An address that a service has for itself outranks a node port at the same address of the node. */
  readonly isNodePort: boolean;
  /** A list of the plan itself: thousands of services cost no copies. */
  readonly endpoints: readonly Endpoint[];
}

/** All that one service port wants. What several of them want alike is counted in DesiredState. */
export interface Fragment {
  /** By `formatVirtualServer`. */
  readonly servers: ReadonlyMap<string, WantedServer>;
  /** Canonical entries. */
  readonly entries: readonly { readonly set: IpsetName; readonly entry: string }[];
  /** To be bound to the device. */
  readonly addresses: readonly string[];
  /** Rules of KUBE-IPVS-OUT-FILTER: this node may not reach the load balancer. */
  readonly outFilter: readonly string[];
}

const nodePortSets: Readonly<Record<Protocol, { readonly all: IpsetName; readonly local: IpsetName }>> = {
  TCP: { all: 'KUBE-NODE-PORT-TCP', local: 'KUBE-NODE-PORT-LOCAL-TCP' },
  UDP: { all: 'KUBE-NODE-PORT-UDP', local: 'KUBE-NODE-PORT-LOCAL-UDP' },
  SCTP: { all: 'KUBE-NODE-PORT-SCTP-HASH', local: 'KUBE-NODE-PORT-LOCAL-SCTP-HASH' },
};

const none: readonly Endpoint[] = [];

const sourceRangeSet: IpsetName = 'KUBE-LOAD-BALANCER-SOURCE-CIDR';

/** What a plan wants. Pure: equal arguments give equal fragments. */
export function compilePlan(plan: ServicePlan, settings: IpvsSettings, facts: InterfaceFacts): Fragment {
  const compiler = new Compiler(plan, settings, facts);
  compiler.loopBack();
  for (const frontend of frontendsOf(plan)) compiler.frontend(frontend);
  compiler.healthCheckNodePort();
  return compiler.fragment;
}

class Compiler {
  readonly fragment: {
    readonly servers: Map<string, WantedServer>;
    readonly entries: { set: IpsetName; entry: string }[];
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

  frontend(frontend: Frontend): void {
    switch (frontend.kind) {
      case 'cluster IP':
        this.#clusterIP(frontend);
        break;
      case 'external IP':
        this.#externalIP(frontend);
        break;
      case 'load balancer IP':
        this.#loadBalancerIP(frontend);
        break;
      case 'node port':
        this.#nodePort(frontend);
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

  #clusterIP(frontend: Frontend): void {
    const { address, port, protocol } = frontend;
    this.#entry('KUBE-CLUSTER-IP', addressPort(address, protocol, port));
    this.#server(frontend, address);
    this.fragment.addresses.push(address);
  }

  #externalIP(frontend: Frontend): void {
    const { address, port, protocol, masqueraded } = frontend;
    const set = masqueraded === 'all' ? 'KUBE-EXTERNAL-IP' : 'KUBE-EXTERNAL-IP-LOCAL';
    this.#entry(set, addressPort(address, protocol, port));
    this.#externalServer(frontend);
  }

  #loadBalancerIP(frontend: Frontend): void {
    const { address, port, protocol, masqueraded, sourceRanges } = frontend;
    const entry = addressPort(address, protocol, port);
    this.#entry('KUBE-LOAD-BALANCER', entry);
    if (masqueraded !== 'all') this.#entry('KUBE-LOAD-BALANCER-LOCAL', entry);
    if (sourceRanges.length > 0) this.#sourceRanges(frontend);
    this.#externalServer(frontend);
  }

  #nodePort(frontend: Frontend): void {
    const { port, protocol, masqueraded } = frontend;
    const { all, local } = nodePortSets[protocol];
    for (const ip of this.#facts.nodePortIPs) {
      const entry = protocol === 'SCTP' ? addressPort(ip, protocol, port) : `${port}`;
      this.#entry(all, entry);
      if (masqueraded !== 'all') this.#entry(local, entry);
      this.#server(frontend, ip);
    }
  }

  /** Only sources in the ranges may come; the node itself sends from the VIP, because that is a local address. */
  #sourceRanges({ address: vip, protocol, port, sourceRanges }: Frontend): void {
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
  #externalServer(frontend: Frontend): void {
    const { address } = frontend;
    this.#server(frontend, address);
    if (!this.#facts.addresses.has(address)) this.fragment.addresses.push(address);
  }

  #server(frontend: Frontend, address: string): void {
    const server = virtualServer(this.#settings, address, frontend.port, this.#plan);
    const key = formatVirtualServer(server);
    if (this.fragment.servers.has(key)) return;
    const isNodePort = frontend.kind === 'node port';
    this.fragment.servers.set(key, { server, isNodePort, endpoints: endpointsBehind(frontend) });
  }

  #entry(set: IpsetName, entry: string): void {
    this.fragment.entries.push({ set, entry });
  }
}

/**
 * A virtual server has one list of endpoints, whoever sends: that for clients elsewhere or, where policy Local drops
 * their traffic, that for clients on this node. Without any it rejects. Differs from upstream (strict-internal-policy),
 * which sends cluster IP traffic under policy Local to endpoints elsewhere when the service has an external address.
 */
function endpointsBehind({ plan, endpoints, nearEndpoints }: Frontend): readonly Endpoint[] {
  const list = endpoints ?? nearEndpoints;
  return list ? plan[list] : none;
}

/** `address,protocol:port` */
function addressPort(address: string, protocol: Protocol, port: number): string {
  return `${address},${protocol.toLowerCase()}:${port}`;
}

/** `address,protocol:port,source`, where the source is an address or a CIDR. */
function addressPortSource(address: string, protocol: Protocol, port: number, source: string): string {
  return `${addressPort(address, protocol, port)},${source}`;
}
