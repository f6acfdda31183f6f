import { joinHostPort } from '../model/ip.ts';

/** A UDP service port as far as its flows are concerned. */
export interface UDPTarget {
  /** Cluster IP, external IPs and load balancer VIPs, canonical. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** 0 = none. */
  readonly nodePort: number;
  /** `ip:port` of every endpoint that serves, terminating ones included: flows to them are left alone. */
  readonly serving: ReadonlySet<string>;
}

/** One direction-less view of a conntrack entry: where it was sent to, and who answers. */
export interface UDPFlow {
  readonly destinationIP: string;
  readonly destinationPort: number;
  readonly answererIP: string;
  readonly answererPort: number;
}

/** Flows to one frontend or, without an address, to one node port. */
export interface Scope {
  readonly destinationIP?: string;
  readonly destinationPort: number;
}

/** A place that flows go to: a frontend, or a node port on any address. */
interface Place extends Scope {
  /** The service ports that claim it: nobody when it is about to be forgotten, several when they disagree. */
  readonly claims: Map<string, ReadonlySet<string>>;
  /** Number of the latest change that concerned it. */
  changed: number;
}

/**
 * Which UDP flows the service ports allow. Frontends and node ports that a change took away are remembered, with
 * nobody behind them, until `settle` says that their flows are gone: flows of a deleted Service must go, too.
 * Changes are numbered, so that those made during a pass over the flows wait for the next one.
 */
export class UDPTargets {
  readonly #targets = new Map<string, UDPTarget>();
  readonly #frontends = new Map<string, Place>();
  readonly #nodePorts = new Map<number, Place>();
  /** Where flows may be that contradict the targets. */
  readonly #unsettled = new Set<Place>();
  #changes = 0;
  #settled = 0;

  /** Sets or (without a target) removes what is behind a service port. */
  update(key: string, target: UDPTarget | undefined): void {
    const before = this.#targets.get(key);
    if (!before && !target) return;
    this.#changes++;
    if (before) for (const place of this.#placesOf(before)) place.claims.delete(key);
    if (!target) {
      this.#targets.delete(key);
      return;
    }
    this.#targets.set(key, target);
    for (const place of this.#placesOf(target)) place.claims.set(key, target.serving);
  }

  /** How many changes there have been; what a pass that starts now covers. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether the flows have been looked at since this many changes. */
  isSettled(changes: number): boolean {
    return this.#settled >= changes;
  }

  /** All that changes since the last pass were about; undefined when that is more than `limit` places. */
  scopes(limit: number): Scope[] | undefined {
    return this.#unsettled.size > limit ? undefined : [...this.#unsettled];
  }

  /** The flows have been looked at since this many changes: what nobody claimed by then may be forgotten. */
  settle(changes: number): void {
    this.#settled = changes;
    for (const place of this.#unsettled) {
      if (place.changed > changes) continue;
      this.#unsettled.delete(place);
      if (place.claims.size > 0) continue;
      if (place.destinationIP === undefined) this.#nodePorts.delete(place.destinationPort);
      else this.#frontends.delete(joinHostPort(place.destinationIP, place.destinationPort));
    }
  }

  /**
   * Whether the flow goes somewhere that no service port sends such traffic to any more. A port number that happens
   * to be a node port says nothing about flows to other machines: they just pass by.
   */
  isStale(flow: UDPFlow, isOwnAddress: (ip: string) => boolean): boolean {
    const frontend = this.#frontends.get(joinHostPort(flow.destinationIP, flow.destinationPort));
    if (frontend) return !isServed(frontend, flow);
    const nodePort = this.#nodePorts.get(flow.destinationPort);
    return nodePort !== undefined && !isServed(nodePort, flow) && isOwnAddress(flow.destinationIP);
  }

  /** The places of a target, made where they are new, as concerned by the latest change. */
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
  const place = places.get(key) ?? { ...scope, claims: new Map(), changed: 0 };
  places.set(key, place);
  return place;
}

/** Which of several service ports has the place is for the backend to say: a flow that suits any of them stays. */
function isServed({ claims }: Place, { answererIP, answererPort }: UDPFlow): boolean {
  const answerer = joinHostPort(answererIP, answererPort);
  for (const serving of claims.values()) if (serving.has(answerer)) return true;
  return false;
}
