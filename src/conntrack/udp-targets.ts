import { joinHostPort } from '../model/ip.ts';

/** What flows of a UDP service port depend on. */
export interface UDPTarget {
  /** Cluster IP, external IPs and load balancer VIPs, canonical. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** 0 = none. */
  readonly nodePort: number;
  /** `ip:port` of every serving endpoint, including terminating ones: flows to them stay. */
  readonly serving: ReadonlySet<string>;
  /** Whether one that left may still answer what it has received. A socket of this program that is closed cannot. */
  readonly answersAfterLeaving: boolean;
}

/** Endpoints that left a frontend or node port with the change of this number. */
interface Departure {
  readonly endpoints: ReadonlySet<string>;
  readonly change: number;
}

/** What a pass over the flows covers. */
export interface Reach {
  /** Number of changes. */
  readonly changes: number;
  /** Endpoints that left with one of this many changes have no grace any more. */
  readonly graceOver: number;
}

/** A conntrack entry: where the client sends to, and which endpoint answers. */
export interface UDPFlow {
  readonly destinationIP: string;
  readonly destinationPort: number;
  readonly answererIP: string;
  readonly answererPort: number;
  /** No packet was seen for a few seconds, so no request is in flight. */
  readonly isQuiet: boolean;
}

/** Identifies flows to one frontend or, without an address, to one node port. */
export interface Scope {
  readonly destinationIP?: string;
  readonly destinationPort: number;
}

/** A frontend, or a node port on any address. */
interface Place extends Scope {
  /** The service port that owns it; undefined when it is about to be forgotten. */
  owner: { readonly key: string; readonly target: UDPTarget } | undefined;
  /** The target of the owner according to the kernel's rules. */
  programmed: UDPTarget | undefined;
  /** Number of the last change that affected it. */
  changed: number;
  /** Flows to these endpoints have a grace, in which answers to requests in flight still arrive. */
  departures: Departure[];
}

/**
 * Decides which UDP flows are stale. Removed frontends and node ports are remembered, without endpoints, until `settle`
 * says that their flows are gone: flows of a deleted Service are stale too. Changes are numbered, so that those made
 * during a pass over the flows wait for the next one, and so that endpoints that just left can be given a grace.
 */
export class UDPTargets {
  readonly #targets = new Map<string, UDPTarget>();
  readonly #frontends = new Map<string, Place>();
  readonly #nodePorts = new Map<number, Place>();
  /** Places that changed since the last pass: they may have stale flows. */
  readonly #unsettled = new Set<Place>();
  /** Places that changed since the last `programmed`. */
  readonly #unprogrammed = new Set<Place>();
  /** Places with departures. */
  readonly #left = new Set<Place>();
  #changes = 0;
  #settled = 0;

  /** Sets a service port's target, or removes the service port. */
  update(key: string, target: UDPTarget | undefined): void {
    const before = this.#targets.get(key);
    if (!before && !target) return;
    this.#changes++;
    for (const place of before ? this.#placesOf(before) : []) {
      // Another service port may have got it in the same change.
      if (place.owner?.key === key) place.owner = undefined;
    }
    if (!target) {
      this.#targets.delete(key);
      return;
    }
    this.#targets.set(key, target);
    for (const place of this.#placesOf(target)) place.owner = { key, target };
  }

  /** To be called when all changes so far are programmed: endpoints that left by them have a grace from now on. */
  programmed(): void {
    const gone = lastResultOf(departed);
    for (const place of this.#unprogrammed) {
      const [before, after] = [place.programmed, place.owner?.target];
      place.programmed = after;
      const endpoints = before?.answersAfterLeaving ? gone(before, after) : nobody;
      if (endpoints.size === 0) continue;
      place.departures.push({ endpoints, change: this.#changes });
      this.#left.add(place);
    }
    this.#unprogrammed.clear();
  }

  /** Number of changes so far. A pass that starts now covers them. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether a pass has covered this many changes. */
  isSettled(changes: number): boolean {
    return this.#settled >= changes;
  }

  /** Whether an endpoint has a grace that has not been followed by a pass. */
  get hasDepartures(): boolean {
    return this.#left.size > 0;
  }

  /** Whether the grace of an endpoint is over that left with one of this many changes. */
  isGraceOver(changes: number): boolean {
    return this.#placesAfterGrace(changes).length > 0;
  }

  /** Returns what a pass has to check; undefined if that is more than `limit` places. */
  scopes(limit: number, { graceOver }: Pick<Reach, 'graceOver'>): Scope[] | undefined {
    const places = new Set([...this.#unsettled, ...this.#placesAfterGrace(graceOver)]);
    return places.size > limit ? undefined : [...places];
  }

  /** To be called after a pass. Forgets places that no service port has any more. */
  settle({ changes, graceOver }: Reach): void {
    this.#settled = changes;
    const places = [...this.#unsettled, ...this.#placesAfterGrace(graceOver)];
    for (const place of places) {
      place.departures = place.departures.filter(({ change }) => change > graceOver);
      if (place.departures.length === 0) this.#left.delete(place);
      if (place.changed <= changes) this.#unsettled.delete(place);
      if (!place.owner && !this.#unsettled.has(place) && !this.#left.has(place)) this.#forget(place);
    }
  }

  /**
   * Whether the flow goes to an endpoint that no longer serves its destination and has no grace. Flows to other machines
   * are never stale, even if their port number is one of our node ports.
   */
  isStale(
    flow: UDPFlow,
    isOwnAddress: (ip: string) => boolean,
    { graceOver }: Pick<Reach, 'graceOver'>,
  ): boolean {
    const frontend = this.#frontends.get(joinHostPort(flow.destinationIP, flow.destinationPort));
    if (frontend) return !isKept(frontend, flow, graceOver);
    const nodePort = this.#nodePorts.get(flow.destinationPort);
    return nodePort !== undefined && !isKept(nodePort, flow, graceOver) && isOwnAddress(flow.destinationIP);
  }

  #placesAfterGrace(changes: number): Place[] {
    return [...this.#left].filter(({ departures }) => departures.some(({ change }) => change <= changes));
  }

  #forget({ destinationIP, destinationPort }: Place): void {
    if (destinationIP === undefined) this.#nodePorts.delete(destinationPort);
    else this.#frontends.delete(joinHostPort(destinationIP, destinationPort));
  }

  /** Returns the places of a target, adding new ones, and marks them as changed. */
  #placesOf({ addresses, port, nodePort }: UDPTarget): Place[] {
    const places = addresses.map((destinationIP) =>
      placeAt(this.#frontends, joinHostPort(destinationIP, port), { destinationIP, destinationPort: port }),
    );
    if (nodePort !== 0) places.push(placeAt(this.#nodePorts, nodePort, { destinationPort: nodePort }));
    for (const place of places) {
      place.changed = this.#changes;
      this.#unsettled.add(place);
      this.#unprogrammed.add(place);
    }
    return places;
  }
}

function placeAt<K>(places: Map<K, Place>, key: K, scope: Scope): Place {
  const place = places.get(key) ?? {
    ...scope,
    owner: undefined,
    programmed: undefined,
    changed: 0,
    departures: [],
  };
  places.set(key, place);
  return place;
}

const nobody: ReadonlySet<string> = new Set();

function departed({ serving }: UDPTarget, after: UDPTarget | undefined): ReadonlySet<string> {
  return after ? new Set([...serving].filter((id) => !after.serving.has(id))) : serving;
}

/** Remembers the last result: the places of a service port come one after another, with the same targets. */
function lastResultOf<A, B, R>(compute: (a: A, b: B) => R): (a: A, b: B) => R {
  let last: { readonly a: A; readonly b: B; readonly result: R } | undefined;
  return (a, b) => {
    if (last?.a !== a || last.b !== b) last = { a, b, result: compute(a, b) };
    return last.result;
  };
}

function isKept({ owner, programmed, departures }: Place, flow: UDPFlow, graceOver: number): boolean {
  const answerer = joinHostPort(flow.answererIP, flow.answererPort);
  if (owner?.target.serving.has(answerer)) return true;
  // Its grace has not even begun.
  if (programmed?.answersAfterLeaving && programmed.serving.has(answerer)) return true;
  if (flow.isQuiet) return false;
  return departures.some(({ endpoints, change }) => change > graceOver && endpoints.has(answerer));
}
