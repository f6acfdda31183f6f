import type { EndpointBytes } from './placement.ts';
import { firstMember, lastMember } from './sticky-rules.ts';

/** The numbers by which the affinity maps know a service port and its endpoints. */
export interface StickyPlacement {
  readonly service: number;
  readonly members: ReadonlyMap<EndpointBytes, number>;
  /** The number to try first for the next endpoint. */
  readonly nextMember: number;
}

const lastService = 0xffff;

/**
 * Allocates service numbers, and member numbers within them. Both wrap around before a number is reused: clients'
 * records outlive what they name.
 */
export class StickyNumbers {
  readonly #taken = new Set<number>();
  /** In use when the kernel was read, and perhaps still named by records. */
  readonly #avoided = new Set<number>();
  #next = 1;

  /** The same numbers for what stays, fresh ones for what is new. Throws when there are none left. */
  renew(earlier: StickyPlacement | undefined, targets: ReadonlySet<EndpointBytes>): StickyPlacement {
    const members = new Map<EndpointBytes, number>();
    for (const [target, member] of earlier?.members ?? []) {
      if (targets.has(target)) members.set(target, member);
    }
    const taken = new Set(members.values());
    let next = earlier?.nextMember ?? firstMember;
    for (const target of targets) {
      if (members.has(target)) continue;
      const member = firstFree(taken, next, firstMember, lastMember);
      if (member === undefined) throw new Error(`client affinity: more than ${lastMember} endpoints`);
      taken.add(member);
      members.set(target, member);
      next = member + 1;
    }
    return { service: earlier?.service ?? this.#newService(), members, nextMember: next };
  }

  /** Keeps a number from being handed out to a new service. */
  avoid(service: number): void {
    this.#avoided.add(service);
  }

  /** Takes a number that was allocated earlier; returns false when another service port has it. */
  reserve(service: number): boolean {
    if (this.#taken.has(service)) return false;
    this.#taken.add(service);
    return true;
  }

  release(service: number): void {
    this.#taken.delete(service);
  }

  #newService(): number {
    const unavailable = { has: (n: number) => this.#taken.has(n) || this.#avoided.has(n) };
    const service = firstFree(unavailable, this.#next, 1, lastService);
    if (service === undefined) throw new Error(`client affinity: more than ${lastService} service ports`);
    this.#taken.add(service);
    this.#next = service + 1;
    return service;
  }
}

/** The first number from `start` on, going round once, that is not taken. */
function firstFree(
  taken: { has(candidate: number): boolean },
  start: number,
  first: number,
  last: number,
): number | undefined {
  const size = last - first + 1;
  for (let i = 0; i < size; i++) {
    const candidate = first + ((start - first + i) % size);
    if (!taken.has(candidate)) return candidate;
  }
  return undefined;
}
