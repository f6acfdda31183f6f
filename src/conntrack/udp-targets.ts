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
}

/** A conntrack entry: where the client sends to, and which endpoint answers. */
export interface UDPFlow {
  readonly destinationIP: string;
  readonly destinationPort: number;
  readonly answererIP: string;
  readonly answererPort: number;
}

/** Identifies flows to one frontend or, without an address, to one node port. */
export interface Scope {
  readonly destinationIP?: string;
  readonly destinationPort: number;
}

/** A frontend, or a node port on any address. */
interface Place extends Scope {
  /** The service port that owns it, and its serving endpoints; undefined when it is about to be forgotten. */
  owner: { readonly key: string; readonly serving: ReadonlySet<string> } | undefined;
  /** Number of the last change that affected it. */
  changed: number;
}

/**
 * Decides which UDP flows are stale. Removed frontends and node ports are remembered, without endpoints, until `settle`
 * says that their flows are gone: flows of a deleted Service are stale too. Changes are numbered, so that those made
 * during a pass over the flows wait for the next one.
 */
export class UDPTargets {
  readonly #targets = new Map<string, UDPTarget>();
  readonly #frontends = new Map<string, Place>();
  readonly #nodePorts = new Map<number, Place>();
  /** Places that changed since the last pass: they may have stale flows. */
  readonly #unsettled = new Set<Place>();
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
    for (const place of this.#placesOf(target)) place.owner = { key, serving: target.serving };
  }

  /** Number of changes so far. A pass that starts now covers them. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether a pass has covered this many changes. */
  isSettled(changes: number): boolean {
    return this.#settled >= changes;
  }

  /** Returns what changed since the last pass; undefined if that is more than `limit` places. */
  scopes(limit: number): Scope[] | undefined {
    return this.#unsettled.size > limit ? undefined : [...this.#unsettled];
  }

  /** To be called after a pass that covers this many changes. Forgets places that no service port has any more. */
  settle(changes: number): void {
    this.#settled = changes;
    for (const place of this.#unsettled) {
      if (place.changed > changes) continue;
      this.#unsettled.delete(place);
      if (place.owner) continue;
      if (place.destinationIP === undefined) this.#nodePorts.delete(place.destinationPort);
      else this.#frontends.delete(joinHostPort(place.destinationIP, place.destinationPort));
    }
  }

  /**
   * Whether the flow goes to an endpoint that no longer serves its destination. Flows to other machines are never
   * stale, even if their port number is one of our node ports.
   */
  isStale(flow: UDPFlow, isOwnAddress: (ip: string) => boolean): boolean {
    const frontend = this.#frontends.get(joinHostPort(flow.destinationIP, flow.destinationPort));
    if (frontend) return !isServed(frontend, flow);
    const nodePort = this.#nodePorts.get(flow.destinationPort);
    return nodePort !== undefined && !isServed(nodePort, flow) && isOwnAddress(flow.destinationIP);
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
    }
    return places;
  }
}

function placeAt<K>(places: Map<K, Place>, key: K, scope: Scope): Place {
  const place = places.get(key) ?? { ...scope, owner: undefined, changed: 0 };
  places.set(key, place);
  return place;
}

function isServed({ owner }: Place, { answererIP, answererPort }: UDPFlow): boolean {
  return owner?.serving.has(joinHostPort(answererIP, answererPort)) ?? false;
}
