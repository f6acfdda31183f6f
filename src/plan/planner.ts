import type { TimeSlice } from '../lib/time-slice.ts';
import { type Endpoint, sameEndpoint } from '../model/endpoint.ts';
import { type ServicePort, sameServicePort } from '../model/service-port.ts';
import { type PlanContext, type PlannedPort, planServicePort } from './plan.ts';

/** Where the planner reads Services and endpoints; they must not change while it does. */
export interface PlannerInput {
  /** `namespace/name` of every Service there is. */
  serviceNames(): Iterable<string>;
  service(name: string): ServiceInput | undefined;
}

export interface ServiceInput {
  readonly ports: readonly ServicePort[];
  endpoints(port: ServicePort): readonly Endpoint[];
}

/** How many service ports, or Services, have endpoints that policy Local keeps this node's traffic from. */
export interface NoLocalEndpoints {
  readonly internal: number;
  readonly external: number;
}

const noPorts: readonly ServicePort[] = [];

/**
 * The plans of one family, kept up to date change by change. A plan whose inputs did not change keeps its
 * identity, so whoever holds on to plans can compare them by reference.
 */
export class Planner {
  readonly #plans = new Map<string, PlannedPort>();
  readonly #ports = new Map<string, readonly ServicePort[]>();
  #context: PlanContext = { nodeName: '', zone: '', allowExternalIPs: true };
  readonly #portsWithoutLocal = { internal: 0, external: 0 };
  readonly #servicesWithoutLocal = { internal: 0, external: 0 };

  /** Every plan, by service port key. */
  get plans(): ReadonlyMap<string, PlannedPort> {
    return this.#plans;
  }

  /** Counted per service port. */
  get noLocalEndpoints(): NoLocalEndpoints {
    return { ...this.#portsWithoutLocal };
  }

  /** Counted per Service, as ipvs mode does: where no address is under policy Local, nothing is kept away. */
  get servicesWithoutLocalEndpoints(): NoLocalEndpoints {
    return { ...this.#servicesWithoutLocal };
  }

  /**
   * Plans the named Services anew, or all of them, and returns the keys of the plans that were added, replaced or
   * removed. A context that differs from the last one makes it all of them.
   */
  apply(changed: Iterable<string> | 'all', input: PlannerInput, context: PlanContext): Set<string> {
    const keys = new Set<string>();
    const names = this.#begin(changed, input, context);
    for (const name of names) this.#planService(name, input.service(name), keys);
    return keys;
  }

  /**
   * Like `apply`, yielding to the event loop when the time slice is spent. The input must not change, and nothing
   * else be applied, until it is done.
   */
  async applyInTurns(
    changed: Iterable<string> | 'all',
    input: PlannerInput,
    context: PlanContext,
    timeSlice: TimeSlice,
  ): Promise<Set<string>> {
    const keys = new Set<string>();
    const names = this.#begin(changed, input, context);
    for (const name of names) {
      this.#planService(name, input.service(name), keys);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
    return keys;
  }

  /** Adopts the context and says which Services it takes. */
  #begin(changed: Iterable<string> | 'all', input: PlannerInput, context: PlanContext): Iterable<string> {
    const isSame = sameContext(this.#context, context);
    // Plans hold on to their context; keeping the first of equal ones lets them be compared by reference.
    if (!isSame) this.#context = context;
    return changed === 'all' || !isSame ? this.#everyName(input) : changed;
  }

  #everyName(input: PlannerInput): Iterable<string> {
    return new Set([...input.serviceNames(), ...this.#ports.keys()]);
  }

  #planService(name: string, service: ServiceInput | undefined, keys: Set<string>): void {
    const before = this.#ports.get(name) ?? noPorts;
    const after = service?.ports ?? noPorts;
    this.#count(before, -1);
    for (const { key } of before) {
      if (after.some((port) => port.key === key)) continue;
      this.#plans.delete(key);
      keys.add(key);
    }
    for (const port of after) {
      const endpoints = service?.endpoints(port) ?? [];
      const known = this.#plans.get(port.key);
      if (known && isCurrent(known, port, endpoints, this.#context)) continue;
      this.#plans.set(port.key, planServicePort(port, endpoints, this.#context));
      keys.add(port.key);
    }
    if (after.length > 0) this.#ports.set(name, after);
    else this.#ports.delete(name);
    this.#count(after, 1);
  }

  #count(ports: readonly ServicePort[], sign: 1 | -1): void {
    const plans = ports.flatMap(({ key }) => this.#plans.get(key) ?? []);
    const internal = plans.filter((plan) => plan.lacksInternalEndpoints);
    const external = plans.filter((plan) => plan.lacksExternalEndpoints);
    this.#portsWithoutLocal.internal += sign * internal.length;
    this.#portsWithoutLocal.external += sign * external.length;
    if (internal.length > 0) this.#servicesWithoutLocal.internal += sign;
    if (external.some((plan) => plan.hasLocalPolicyAddress)) this.#servicesWithoutLocal.external += sign;
  }
}

function sameContext(a: PlanContext, b: PlanContext): boolean {
  return a.nodeName === b.nodeName && a.zone === b.zone && a.allowExternalIPs === b.allowExternalIPs;
}

/** Whether planning anew would give the same plan, words included. */
function isCurrent(
  plan: PlannedPort,
  port: ServicePort,
  endpoints: readonly Endpoint[],
  context: PlanContext,
): boolean {
  return (
    sameServicePort(plan.port, port) &&
    sameEndpoints(plan.endpoints, endpoints) &&
    (plan.context === context || isContextFree(plan, context))
  );
}

/** Without hints, the zone that the node is in makes no difference. */
function isContextFree(
  { context, endpoints }: PlannedPort,
  { nodeName, allowExternalIPs }: PlanContext,
): boolean {
  if (context.nodeName !== nodeName || context.allowExternalIPs !== allowExternalIPs) return false;
  return endpoints.every(({ zoneHints, nodeHints }) => !zoneHints && !nodeHints);
}

function sameEndpoints(a: readonly Endpoint[], b: readonly Endpoint[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  return a.every((endpoint, i) => {
    const other = b[i];
    return other !== undefined && sameEndpoint(endpoint, other);
  });
}
