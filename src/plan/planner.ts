import type { TimeSlice } from '../lib/time-slice.ts';
import { type Endpoint, sameEndpoint } from '../model/endpoint.ts';
import { type ServicePort, sameServicePort } from '../model/service-port.ts';
import { lostFrontends } from './frontend.ts';
import { Ownership } from './ownership.ts';
import { type PlanContext, type PlannedPort, planServicePort } from './plan.ts';
import { tooManyToHash } from './reasons.ts';

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

/** How many service ports, or Services, have endpoints only on other nodes while policy Local forbids those. */
export interface NoLocalEndpoints {
  readonly internal: number;
  readonly external: number;
}

const noPorts: readonly ServicePort[] = [];

/**
 * The plans of one family, kept up to date change by change. A plan with unchanged inputs stays the same object, so
 * callers can compare plans by reference.
 */
export class Planner {
  readonly #plans = new Map<string, PlannedPort>();
  readonly #ports = new Map<string, readonly ServicePort[]>();
  readonly #ownership = new Ownership();
  /** Keys of service ports that claim a destination that another one owns. */
  readonly #losers = new Set<string>();
  /** Keys of service ports that have too many endpoints for the hash that they ask for. */
  readonly #unhashed = new Set<string>();
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

  /** Counted per Service, for ipvs mode: without an address under policy Local, a Service does not count. */
  get servicesWithoutLocalEndpoints(): NoLocalEndpoints {
    return { ...this.#servicesWithoutLocal };
  }

  /**
   * Service ports that do not get all that they ask for, with the reason: another one owns a destination, or they have
   * too many endpoints for a hash.
   */
  *shortfalls(): Generator<{ readonly key: string; readonly error: Error }> {
    for (const key of this.#losers) {
      const plan = this.#plans.get(key);
      if (plan) yield { key, error: new Error(describeLost(plan)) };
    }
    for (const key of this.#unhashed) yield { key, error: new Error(tooManyToHash) };
  }

  /**
   * Plans the named Services, or all of them, and returns the keys of the plans that were added, replaced or removed.
   * Plans all of them when the context differs from that of the last call. Yields to the event loop when the time slice
   * is spent; until the promise resolves, the caller must neither change the input nor call `apply` again.
   */
  async apply(
    changed: Iterable<string> | 'all',
    input: PlannerInput,
    context: PlanContext,
    timeSlice: TimeSlice,
  ): Promise<Set<string>> {
    const keys = new Set<string>();
    const rivals = new Set<string>();
    for (const name of this.#begin(changed, input, context)) {
      this.#planService(name, input.service(name), keys, rivals);
      if (timeSlice.isSpent) await timeSlice.yield();
    }
    for (const key of rivals) this.#settleOwnership(key, keys);
    return keys;
  }

  /** Stores the context and returns the names of the Services to plan. */
  #begin(changed: Iterable<string> | 'all', input: PlannerInput, context: PlanContext): Iterable<string> {
    const isSame = sameContext(this.#context, context);
    // Plans refer to their context: keep the first of equal contexts, so that it can be compared by reference.
    if (!isSame) this.#context = context;
    return changed === 'all' || !isSame ? this.#everyName(input) : changed;
  }

  #everyName(input: PlannerInput): Iterable<string> {
    return new Set([...input.serviceNames(), ...this.#ports.keys()]);
  }

  #planService(
    name: string,
    service: ServiceInput | undefined,
    keys: Set<string>,
    rivals: Set<string>,
  ): void {
    const before = this.#ports.get(name) ?? noPorts;
    const after = service?.ports ?? noPorts;
    this.#count(before, -1);
    for (const { key } of before) {
      if (after.some((port) => port.key === key)) continue;
      this.#replace(key, undefined, rivals);
      keys.add(key);
    }
    for (const port of after) {
      const endpoints = service?.endpoints(port) ?? [];
      const known = this.#plans.get(port.key);
      if (known && isCurrent(known, port, endpoints, this.#context)) continue;
      this.#replace(port.key, planServicePort(port, endpoints, this.#context, known?.lost), rivals);
      keys.add(port.key);
    }
    if (after.length > 0) this.#ports.set(name, after);
    else this.#ports.delete(name);
    this.#count(after, 1);
  }

  /** Replaces, adds or removes a plan, and adds to `rivals` each key with destinations that may have a new owner. */
  #replace(key: string, plan: PlannedPort | undefined, rivals: Set<string>): void {
    const known = this.#plans.get(key);
    if (plan) this.#plans.set(key, plan);
    else this.#plans.delete(key);
    if (plan?.isTooLargeToHash) this.#unhashed.add(key);
    else this.#unhashed.delete(key);
    if (known && plan && makesSameClaims(known, plan)) return;
    if (known) for (const rival of this.#ownership.release(known)) rivals.add(rival);
    if (!plan) {
      this.#losers.delete(key);
      return;
    }
    this.#ownership.claim(plan);
    const others = this.#ownership.hasContests ? this.#ownership.rivalsOf(plan) : [];
    if (plan.lost || others.length > 0) for (const rival of [key, ...others]) rivals.add(rival);
  }

  /** Replaces the plan when it has lost or regained a destination. */
  #settleOwnership(key: string, keys: Set<string>): void {
    const plan = this.#plans.get(key);
    if (!plan) return;
    const lost = this.#ownership.lostBy(plan, this.#plans);
    if (lost) this.#losers.add(key);
    else this.#losers.delete(key);
    if (sameLosses(plan.lost, lost)) return;
    this.#plans.set(key, plan.losing(lost));
    keys.add(key);
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

/** Whether both plans claim the same destinations with the same precedence. */
function makesSameClaims(a: PlannedPort, b: PlannedPort): boolean {
  return a.externalIPs.length === b.externalIPs.length && sameServicePort(a.port, b.port);
}

function sameLosses(a: PlannedPort['lost'], b: PlannedPort['lost']): boolean {
  if (a === b) return true;
  return a?.size === b?.size && [...(a ?? [])].every(([name, owner]) => b?.get(name) === owner);
}

/** `external IP 192.0.2.7:80/TCP belongs to service port shop/web:http/TCP` for each lost destination. */
function describeLost(plan: PlannedPort): string {
  const texts = [...lostFrontends(plan)].map(
    ([{ kind, name }, owner]) => `${kind} ${name} belongs to service port ${owner}`,
  );
  return texts.join(', ');
}

function sameContext(a: PlanContext, b: PlanContext): boolean {
  return a.nodeName === b.nodeName && a.zone === b.zone && a.allowExternalIPs === b.allowExternalIPs;
}

/** Whether planning again would give the same plan with the same reasons. */
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

/** Whether the plan is the same in the new context: without hints, the node's zone does not matter. */
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
