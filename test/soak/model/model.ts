import type { NodeState } from '../../contract/objects.ts';
import type { EndpointSpec, ServiceSpec } from '../../contract/story.ts';
import type { SoakPacket } from './packet.ts';
import { promised, type Seen, unserved } from './promise.ts';
import { type Cause, type Tolerance, tolerances } from './tolerances.ts';
import { Track } from './track.ts';

/** A service and its slices: three objects (in each family) that change one after the other. */
interface ServiceTracks {
  readonly service: Track<ServiceSpec | undefined>;
  readonly pods: Track<readonly EndpointSpec[]>;
  readonly hosts: Track<readonly EndpointSpec[]>;
}

interface Window {
  readonly cause: Cause;
  readonly begin: number;
  end: number;
}

/** Connections take less time than this; older states no longer matter. */
const MEMORY_MS = 120_000;

/** What the cluster holds, what it held before, and what the program may therefore have in effect at a time. */
export class Model {
  readonly #mode: string;
  readonly #now: () => number;
  readonly #services = new Map<number, ServiceTracks>();
  readonly #node = new Track<NodeState>({});
  #windows: Window[] = [];

  constructor(mode: string, now: () => number) {
    this.#mode = mode;
    this.#now = now;
  }

  /** Notes a service that is about to be put; undefined for one that is about to be deleted. */
  setService(n: number, spec: ServiceSpec | undefined): void {
    this.#tracks(n).service.set(spec, this.#now());
    this.setEndpoints(n, spec?.endpoints ?? []);
  }

  setEndpoints(n: number, endpoints: ServiceSpec['endpoints']): void {
    const all = endpoints.map(
      (endpoint): EndpointSpec => (typeof endpoint === 'string' ? { at: endpoint } : endpoint),
    );
    const { pods, hosts } = this.#tracks(n);
    pods.set(
      all.filter(({ at }) => at !== 'node'),
      this.#now(),
    );
    hosts.set(
      all.filter(({ at }) => at === 'node'),
      this.#now(),
    );
  }

  setNode(node: NodeState): void {
    this.#node.set(node, this.#now());
  }

  get node(): NodeState {
    return this.#node.latest;
  }

  /** The service with its endpoints, as they were put last. */
  service(n: number): ServiceSpec | undefined {
    const { service, pods, hosts } = this.#tracks(n);
    return service.latest && { ...service.latest, endpoints: [...pods.latest, ...hosts.latest] };
  }

  /** All changes of services that were put until `putBy` are in effect from now on. */
  settleServices(putBy: number): void {
    for (const tracks of this.#services.values())
      for (const track of Object.values(tracks)) this.#settle(track, putBy);
    this.#windows = this.#windows.filter(({ end }) => end >= this.#now() - MEMORY_MS);
  }

  settleNode(putBy: number): void {
    this.#settle(this.#node, putBy);
  }

  /** Begins a time in which a tolerance applies; returns a function that ends it. */
  tolerate(cause: Cause): () => void {
    if (!this.#applies(cause)) return () => {};
    const window = { cause, begin: this.#now(), end: Infinity };
    this.#windows.push(window);
    return () => {
      window.end = this.#now();
    };
  }

  /** Everything that the client of a packet may see, according to states that may have been in effect in this time. */
  promises(packet: SoakPacket, begin: number, end: number): ReadonlySet<Seen> {
    const { service, pods, hosts } = this.#tracks(packet.n);
    const seen = new Set<Seen>();
    for (const spec of service.during(begin, end)) {
      for (const inPods of pods.during(begin, end)) {
        for (const onHosts of hosts.during(begin, end)) {
          for (const node of this.#node.during(begin, end)) {
            const state = { mode: this.#mode, service: spec, endpoints: [...inPods, ...onHosts], node };
            for (const each of promised(packet, state)) seen.add(each);
          }
        }
      }
    }
    return seen;
  }

  /** Why a packet may have ended in a way that no state promises; undefined when nothing explains it. */
  explanation(seen: Seen, promises: ReadonlySet<Seen>, begin: number, end: number): Cause | undefined {
    const window = this.#windows.find((each) => each.begin <= end && each.end >= begin);
    if (window) return window.cause;
    const isRefusedOrServed = promises.size > 1 && (promises.has('REJECT') || promises.has('DROP'));
    const isBetween = isRefusedOrServed && unserved.includes(seen);
    return isBetween && this.#applies('tables') ? 'tables' : undefined;
  }

  #applies(cause: Cause): boolean {
    const { modes }: Tolerance = tolerances[cause];
    return modes?.includes(this.#mode) ?? true;
  }

  #tracks(n: number): ServiceTracks {
    const known = this.#services.get(n);
    if (known) return known;
    const tracks: ServiceTracks = {
      service: new Track<ServiceSpec | undefined>(undefined),
      pods: new Track<readonly EndpointSpec[]>([]),
      hosts: new Track<readonly EndpointSpec[]>([]),
    };
    this.#services.set(n, tracks);
    return tracks;
  }

  #settle(track: Track<unknown>, putBy: number): void {
    track.settle(putBy, this.#now());
    track.forget(this.#now() - MEMORY_MS);
  }
}
