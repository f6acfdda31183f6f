import type { ConnectionReport } from './connection-log.ts';
import type { ForwardedService, Forwarder, ListenerState, Listening, TrafficReport } from './forwarder.ts';

/**
 * Spreads services over several forwarders, each on a core of its own. All connections of a service are in one
 * forwarder, which alone decides turns and client affinity.
 */
export class ForwarderPool implements Forwarder {
  readonly #members: readonly Forwarder[];
  readonly #homes = new Map<string, Forwarder>();
  readonly #services = new Map<Forwarder, number>();
  readonly #listeners = new Map<string, { readonly home: Forwarder }>();

  /** Throws if `members` is empty. */
  constructor(members: readonly Forwarder[]) {
    if (members.length === 0) throw new Error('a pool needs a forwarder');
    this.#members = members;
  }

  setService(key: string, service: ForwardedService): void {
    this.#home(key).setService(key, service);
  }

  removeService(key: string): void {
    const home = this.#homes.get(key);
    if (!home) return;
    this.#homes.delete(key);
    this.#services.set(home, this.#load(home) - 1);
    home.removeService(key);
  }

  async listen(id: string, listening: Listening): Promise<number> {
    if (this.#listeners.has(id)) throw new Error(`there is a listener ${id} already`);
    const place = { home: this.#home(listening.service) };
    this.#listeners.set(id, place);
    try {
      return await place.home.listen(id, listening);
    } catch (error) {
      // Meanwhile the caller may have closed it and opened another one with this id.
      if (this.#listeners.get(id) === place) this.#listeners.delete(id);
      throw error;
    }
  }

  unlisten(id: string, endConnections: boolean): void {
    this.#listeners.get(id)?.home.unlisten(id, endConnections);
    this.#listeners.delete(id);
  }

  async traffic(): Promise<TrafficReport> {
    const reports = await Promise.all(this.#members.map((member) => member.traffic()));
    return new Map(reports.flatMap((report) => [...report]));
  }

  async connections(): Promise<ConnectionReport> {
    const reports = await Promise.all(this.#members.map((member) => member.connections()));
    return {
      startsOver: reports.some(({ startsOver }) => startsOver),
      connections: reports.flatMap(({ connections }) => connections),
    };
  }

  async listeners(): Promise<ReadonlyMap<string, ListenerState>> {
    const listeners = await Promise.all(this.#members.map((member) => member.listeners()));
    return new Map(listeners.flatMap((each) => [...each]));
  }

  async outlook(...args: Parameters<Forwarder['outlook']>): ReturnType<Forwarder['outlook']> {
    const outlooks = await Promise.all(this.#members.map((member) => member.outlook(...args)));
    return outlooks.find((outlook) => outlook !== undefined);
  }

  async bindings(...args: Parameters<Forwarder['bindings']>): ReturnType<Forwarder['bindings']> {
    const [key] = args;
    return this.#homes.get(key)?.bindings(...args) ?? { bindings: [], next: undefined };
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.close()));
  }

  /** Returns the forwarder of the service; a new service goes to the one with the fewest services. */
  #home(key: string): Forwarder {
    const known = this.#homes.get(key);
    if (known) return known;
    const home = this.#members.reduce((best, member) =>
      this.#load(member) < this.#load(best) ? member : best,
    );
    this.#homes.set(key, home);
    this.#services.set(home, this.#load(home) + 1);
    return home;
  }

  #load(member: Forwarder): number {
    return this.#services.get(member) ?? 0;
  }
}
