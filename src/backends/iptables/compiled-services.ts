import { type CompiledService, compareServices } from './compile.ts';

/** Every service port that is programmed, in the order in which they are written, and how many rules they make. */
export class CompiledServices implements Iterable<CompiledService> {
  readonly #byKey: Map<string, CompiledService>;
  /** Sorted. */
  readonly #list: CompiledService[];
  #filterRules = 0;
  #natRules = 0;

  constructor(services: readonly CompiledService[] = []) {
    this.#byKey = new Map(services.map((service) => [service.key, service]));
    this.#list = [...this.#byKey.values()].sort(compareServices);
    for (const service of this.#list) this.#count(service, 1);
  }

  get filterRules(): number {
    return this.#filterRules;
  }

  get natRules(): number {
    return this.#natRules;
  }

  get(key: string): CompiledService | undefined {
    return this.#byKey.get(key);
  }

  [Symbol.iterator](): Iterator<CompiledService> {
    return this.#list[Symbol.iterator]();
  }

  set(service: CompiledService): void {
    const known = this.#byKey.get(service.key);
    this.#list.splice(this.#placeOf(service), known ? 1 : 0, service);
    this.#byKey.set(service.key, service);
    if (known) this.#count(known, -1);
    this.#count(service, 1);
  }

  delete(key: string): void {
    const known = this.#byKey.get(key);
    if (!known) return;
    this.#list.splice(this.#placeOf(known), 1);
    this.#byKey.delete(key);
    this.#count(known, -1);
  }

  /** Where the service port is, or would have to be. */
  #placeOf(service: CompiledService): number {
    let low = 0;
    let high = this.#list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const there = this.#list[middle];
      if (there && compareServices(there, service) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #count({ dispatch, ownRules }: CompiledService, sign: 1 | -1): void {
    this.#filterRules += sign * dispatch.filter.length;
    this.#natRules += sign * (dispatch.nat.length + ownRules);
  }
}
