import type { Endpoint } from '../model/endpoint.ts';
import { type Balance, isExternallyAccessible, type ServicePort } from '../model/service-port.ts';
import { maxStableEndpoints } from '../model/stable-table.ts';
import { clusterEndpoints, isUsable, localEndpoints, unionOf } from './endpoint-sets.ts';
import { decisionReason, type Explainable, type Subject } from './reasons.ts';
import type { Decision, EndpointList, ServicePlan, TopologyMode } from './service-plan.ts';
import { type PlanContext, surveyHints, topologyModeOf } from './topology.ts';

export type { PlanContext } from './topology.ts';

const none: readonly never[] = [];

/**
 * Decides everything about one service port: which endpoints serve which traffic, what is dropped or rejected, and
 * why. Pure: equal arguments give equal plans. `endpoints` are all known endpoints of the port, sorted by id; `lost`
 * are the destinations that other service ports own.
 */
export function planServicePort(
  port: ServicePort,
  endpoints: readonly Endpoint[],
  context: PlanContext,
  lost?: ServicePlan['lost'],
): PlannedPort {
  return new PlannedPort(port, endpoints, context, lost);
}

/**
 * A plan that keeps its inputs, to explain itself and to be compared with newer inputs. It stores lists of endpoints
 * and derives each decision when it is read, so that 50,000 plans stay small.
 */
export class PlannedPort implements ServicePlan, Explainable {
  readonly port: ServicePort;
  /** The node that the plan was made for. Its zone may be out of date when no endpoint has hints. */
  readonly context: PlanContext;
  readonly mode: TopologyMode;
  readonly endpoints: readonly Endpoint[];
  readonly cluster: readonly Endpoint[];
  readonly local: readonly Endpoint[];
  readonly all: readonly Endpoint[];
  readonly hasAnyEndpoints: boolean;
  readonly lost: ReadonlyMap<string, string> | undefined;

  constructor(
    port: ServicePort,
    endpoints: readonly Endpoint[],
    context: PlanContext,
    lost?: ServicePlan['lost'],
  ) {
    this.port = port;
    this.context = context;
    this.endpoints = endpoints;
    const { usesClusterEndpoints, usesLocalEndpoints } = this;
    this.mode = usesClusterEndpoints ? topologyModeOf(surveyHints(endpoints, context)) : 'none';
    this.cluster = usesClusterEndpoints ? clusterEndpoints(endpoints, this.mode, context) : none;
    this.local = usesLocalEndpoints ? localEndpoints(endpoints) : none;
    this.all = unionOf(this.cluster, this.local);
    this.hasAnyEndpoints = this.cluster.length > 0 || (usesLocalEndpoints && endpoints.some(isUsable));
    this.lost = lost;
  }

  get externalIPs(): readonly string[] {
    return this.context.allowExternalIPs ? this.port.externalIPs : none;
  }

  get balance(): Balance {
    return this.isTooLargeToHash ? 'default' : this.port.balance;
  }

  /** The Service asks for a hash, and this port has too many endpoints for one. */
  get isTooLargeToHash(): boolean {
    return this.port.balance !== 'default' && this.all.length > maxStableEndpoints;
  }

  get externallyAccessible(): boolean {
    return isExternallyAccessible(this.port);
  }

  /** Under Local/Local, pods and the node itself still reach external addresses through the cluster set. */
  get usesClusterEndpoints(): boolean {
    return !this.port.internalPolicyLocal || this.externallyAccessible;
  }

  get usesLocalEndpoints(): boolean {
    const { internalPolicyLocal, externalPolicyLocal } = this.port;
    return internalPolicyLocal || (externalPolicyLocal && this.externallyAccessible);
  }

  get internal(): Decision {
    return decide(this, 'internal', this.port.internalPolicyLocal);
  }

  get external(): Decision {
    return decide(this, 'external', this.port.externalPolicyLocal);
  }

  get near(): Decision | undefined {
    const isSplit = this.port.externalPolicyLocal && this.cluster.length > 0;
    return isSplit ? new Forward(this, 'near', 'cluster') : undefined;
  }

  get topology(): ServicePlan['topology'] {
    return new Topology(this);
  }

  /** Adds the decisions, which are getters, to the JSON. */
  toJSON(): object {
    const { internal, external, near, topology } = this;
    return { ...this, internal, external, near, topology };
  }

  /** The same plan, with these destinations owned by others. */
  losing(lost: ServicePlan['lost']): PlannedPort {
    return new PlannedPort(this.port, this.endpoints, this.context, lost);
  }

  /** There are endpoints, but policy Local keeps cluster IP traffic from them on this node. */
  get lacksInternalEndpoints(): boolean {
    return this.hasAnyEndpoints && this.port.internalPolicyLocal && this.local.length === 0;
  }

  /** The same for outside traffic; true even if the port has no external address. */
  get lacksExternalEndpoints(): boolean {
    return this.hasAnyEndpoints && this.port.externalPolicyLocal && this.local.length === 0;
  }

  /** Whether policy Local applies to any address of the port. */
  get hasLocalPolicyAddress(): boolean {
    const { port, externalIPs } = this;
    const isReachable = isExternallyAccessible({ ...port, externalIPs });
    return port.internalPolicyLocal || (port.externalPolicyLocal && isReachable);
  }
}

function decide(plan: PlannedPort, subject: Subject, isLocal: boolean): Decision {
  if (!plan.hasAnyEndpoints) return new Reject(plan, subject);
  const endpoints = isLocal ? 'local' : 'cluster';
  return plan[endpoints].length === 0 ? new Drop(plan, subject) : new Forward(plan, subject, endpoints);
}

/** Builds the reason's text when it is read: three sentences for each of 50,000 services would fill megabytes. */
class Reasoned {
  readonly #plan: Explainable;
  readonly #subject: Subject;

  constructor(plan: Explainable, subject: Subject) {
    this.#plan = plan;
    this.#subject = subject;
  }

  get reason(): string {
    return decisionReason(this.#plan, this.#subject);
  }

  /** Adds the reason, which is a getter, to the JSON. */
  toJSON(): object {
    return { ...this, reason: this.reason };
  }
}

class Forward extends Reasoned {
  readonly action = 'forward';
  readonly endpoints: EndpointList;

  constructor(plan: Explainable, subject: Subject, endpoints: EndpointList) {
    super(plan, subject);
    this.endpoints = endpoints;
  }
}

class Drop extends Reasoned {
  readonly action = 'drop';
}

class Reject extends Reasoned {
  readonly action = 'reject';
}

class Topology extends Reasoned {
  readonly mode: TopologyMode;

  constructor(plan: Explainable) {
    super(plan, 'topology');
    this.mode = plan.mode;
  }
}
