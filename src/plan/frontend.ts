import { joinHostPort } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { Decision, EndpointList, ServicePlan } from './service-plan.ts';

export type FrontendKind = 'cluster IP' | 'external IP' | 'load balancer IP' | 'node port';

/**
 * Clients whose source address is masqueraded: all clients but pods (with `masqueradeAll` pods too), all clients, or
 * only this node itself.
 */
export type Masqueraded = 'all but pods' | 'all' | 'this node';

const noRanges: readonly string[] = [];

/**
 * One destination of a service port, and what happens to new connections to it. Callers make one when they need it; it
 * reads everything from the plan, so 50,000 plans hold no frontends.
 */
export class Frontend {
  readonly plan: ServicePlan;
  readonly kind: FrontendKind;
  /** Empty for a node port, which is served at many addresses of the node. */
  readonly address: string;

  constructor(plan: ServicePlan, kind: FrontendKind, address: string) {
    this.plan = plan;
    this.kind = kind;
    this.address = address;
  }

  get port(): number {
    const { port, nodePort } = this.plan.port;
    return this.kind === 'node port' ? nodePort : port;
  }

  get protocol(): Protocol {
    return this.plan.port.protocol;
  }

  /** `10.96.0.1:80/TCP`, or `:30080/TCP` for a node port. Only one service port can own a frontend of this name. */
  get name(): string {
    return frontendName(this.address, this.port, this.protocol);
  }

  /** The decision for clients elsewhere. */
  get outside(): Decision {
    return this.kind === 'cluster IP' ? this.plan.internal : this.plan.external;
  }

  /** The decision for pods on this node and the node itself; undefined when `outside` applies to them too. */
  get near(): Decision | undefined {
    return this.kind === 'cluster IP' ? undefined : this.plan.near;
  }

  /** The endpoints for clients elsewhere; undefined when their connections are dropped or rejected. */
  get endpoints(): EndpointList | undefined {
    return listOf(this.outside);
  }

  /** The endpoints for clients on this node; undefined when `endpoints` applies to them too. */
  get nearEndpoints(): EndpointList | undefined {
    return this.near && listOf(this.near);
  }

  /** Only clients in these ranges may reach it; when empty, all clients may. */
  get sourceRanges(): readonly string[] {
    const { sourceRanges, loadBalancerVIPs } = this.plan.port;
    return sourceRanges.length > 0 && loadBalancerVIPs.includes(this.address) ? sourceRanges : noRanges;
  }

  get masqueraded(): Masqueraded {
    return this.kind === 'cluster IP' ? 'all but pods' : masqueradedElsewhere(this.plan);
  }
}

/** Who is masqueraded at external addresses and node ports of a service port, even if it has none now. */
export function masqueradedElsewhere({ port }: ServicePlan): Masqueraded {
  return port.externalPolicyLocal ? 'this node' : 'all';
}

function listOf(decision: Decision): EndpointList | undefined {
  return decision.action === 'forward' ? decision.endpoints : undefined;
}

/** `address` is empty for a node port. */
function frontendName(address: string, port: number, protocol: Protocol): string {
  return `${address === '' ? `:${port}` : joinHostPort(address, port)}/${protocol}`;
}

/** Every destination that a service port claims. An address of two kinds is yielded twice. */
export function* claimedFrontends(plan: ServicePlan): Generator<Frontend> {
  const { clusterIP, loadBalancerVIPs, nodePort } = plan.port;
  if (clusterIP !== '') yield new Frontend(plan, 'cluster IP', clusterIP);
  for (const ip of plan.externalIPs) yield new Frontend(plan, 'external IP', ip);
  for (const ip of loadBalancerVIPs) yield new Frontend(plan, 'load balancer IP', ip);
  if (nodePort !== 0) yield new Frontend(plan, 'node port', '');
}

/** The destinations that a service port owns: those it claims, without those that another service port owns. */
export function* frontendsOf(plan: ServicePlan): Generator<Frontend> {
  for (const frontend of claimedFrontends(plan)) if (!isLost(frontend)) yield frontend;
}

/** The destinations that a service port owns, each once: of an address of two kinds, the kind yielded first. */
export function distinctFrontends(plan: ServicePlan): Frontend[] {
  const { externalIPs, port } = plan;
  const frontends = [...frontendsOf(plan)];
  // A cluster IP and a node port are never the same destination.
  if (externalIPs.length + port.loadBalancerVIPs.length === 0) return frontends;
  return frontends.filter((one, i) => frontends.findIndex((other) => other.address === one.address) === i);
}

/** Whether another service port owns this destination. */
export function isLost(frontend: Frontend): boolean {
  return frontend.plan.lost?.has(frontend.name) ?? false;
}

/** The destinations that a service port claims but another one owns, with the owner's key. */
export function* lostFrontends(plan: ServicePlan): Generator<readonly [frontend: Frontend, owner: string]> {
  if (!plan.lost) return;
  for (const frontend of claimedFrontends(plan)) {
    const owner = plan.lost.get(frontend.name);
    if (owner !== undefined) yield [frontend, owner];
  }
}
