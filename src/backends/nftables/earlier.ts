import type { Frontend } from '../../plan/frontend.ts';
import type { EndpointList, ServicePlan } from '../../plan/service-plan.ts';
import { type Bytes, readWord, wordBytes } from './bytes.ts';
import { type ElementMap, elementsIn } from './element-diff.ts';
import { keyOf } from './frontends.ts';
import { localSlotBase } from './layout.ts';
import { type EarlierPlacement, type EndpointBytes, isNumbered } from './placement.ts';
import type { StickyNumbers, StickyPlacement } from './sticky-numbers.ts';
import { firstMember, memberNumber, serviceNumber } from './sticky-rules.ts';

interface StickyService {
  readonly members: Map<EndpointBytes, number>;
  lastMember: number;
}

/**
 * Recovers placements from elements read from the kernel, so that a restart moves no endpoint to another slot and
 * affinity records stay valid. Elements that are missing or make no sense are ignored.
 */
export class EarlierPlacements {
  readonly #elements: ElementMap;
  readonly #numbers: StickyNumbers;
  readonly #services = new Map<number, StickyService>();

  /** Reserves the service numbers in use, so that no new service gets one of them. */
  constructor(elements: ElementMap, numbers: StickyNumbers) {
    this.#elements = elements;
    this.#numbers = numbers;
    for (const set of ['sticky-members', 'sticky-local-members'] as const) {
      for (const [key, target] of elements.get(set) ?? []) this.#noteMember(readWord(key), target);
    }
    // A record may name a member that is gone; its number must not come back while the record lives.
    for (const member of elements.get('clients')?.values() ?? []) this.#noteMember(readWord(member));
    for (const service of this.#services.keys()) numbers.avoid(service);
  }

  of(plan: ServicePlan, frontends: readonly Frontend[]): EarlierPlacement {
    const sticky = isNumbered(plan) ? this.#stickyOf(frontends) : undefined;
    if (!sticky)
      return { cluster: this.#slots(frontends, 'cluster'), local: this.#slots(frontends, 'local') };
    return {
      cluster: this.#stickySlots(sticky, 'cluster'),
      local: this.#stickySlots(sticky, 'local'),
      sticky,
    };
  }

  #noteMember(number: number, target?: EndpointBytes): void {
    const member = number & 0xffff;
    if (member < firstMember) return;
    const service = this.#services.get(number >>> 16) ?? { members: new Map(), lastMember: 0 };
    this.#services.set(number >>> 16, service);
    service.lastMember = Math.max(service.lastMember, member);
    if (target !== undefined) service.members.set(target, member);
  }

  /** Targets in slot order, of the first frontend that has any. */
  #slots(frontends: readonly Frontend[], list: EndpointList): EndpointBytes[] {
    for (const frontend of frontends) {
      const endpoints = this.#elements.get(
        frontend.kind === 'node port' ? 'nodeport-endpoints' : 'endpoints',
      );
      const targets = inSlotOrder(endpoints, keyOf(frontend), list === 'cluster' ? 0 : localSlotBase);
      if (targets.length > 0) return targets;
    }
    return [];
  }

  #stickyOf(frontends: readonly Frontend[]): StickyPlacement | undefined {
    for (const frontend of frontends) {
      const map = frontend.kind === 'node port' ? 'sticky-nodeports' : 'sticky-services';
      const number = elementsIn(this.#elements, map).get(keyOf(frontend));
      const service = number === undefined ? 0 : readWord(number) >>> 16;
      if (service === 0 || !this.#numbers.reserve(service)) continue;
      const { members, lastMember } = this.#services.get(service) ?? { members: new Map(), lastMember: 1 };
      return { service, members, nextMember: lastMember + 1 };
    }
    return undefined;
  }

  #stickySlots({ service, members }: StickyPlacement, list: EndpointList): EndpointBytes[] {
    const byNumber = new Map([...members].map(([target, member]) => [memberNumber(service, member), target]));
    const numbers = inSlotOrder(
      this.#elements.get('sticky-slots'),
      wordBytes(serviceNumber(service, list)),
      0,
    );
    // Where a hash chooses, an endpoint has many slots.
    return [...new Set(numbers)].flatMap((number) => byNumber.get(readWord(number)) ?? []);
  }
}

function inSlotOrder(elements: ReadonlyMap<Bytes, Bytes> | undefined, prefix: Bytes, base: number): Bytes[] {
  const found: Bytes[] = [];
  for (let slot = base; ; slot++) {
    const value = elements?.get(prefix + wordBytes(slot));
    if (value === undefined) return found;
    found.push(value);
  }
}
