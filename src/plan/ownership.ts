import type { ServicePort } from '../model/service-port.ts';
import { claimedFrontends, type Frontend, type FrontendKind } from './frontend.ts';
import type { ServicePlan } from './service-plan.ts';

/** The cluster assigns cluster IPs and load balancer IPs; anybody who may create a Service can write an external IP. */
const rankOf: Readonly<Record<FrontendKind, number>> = {
  'cluster IP': 0,
  'node port': 0,
  'load balancer IP': 1,
  'external IP': 2,
};

/**
 * Decides which service port owns a destination that several claim: by kind of address (cluster IP, load balancer
 * status, external IP), then the older Service, then the smaller UID, then the smaller key. The order of events does
 * not matter, so a restart changes nothing.
 */
export class Ownership {
  /** Keys of the service ports that claim each destination. Nearly always it is one: a string then, to save memory. */
  readonly #claimants = new Map<string, string | readonly string[]>();
  /** Names of destinations that several service ports claim. */
  readonly #contested = new Set<string>();

  /** Whether any destination is contested; false nearly always. */
  get hasContests(): boolean {
    return this.#contested.size > 0;
  }

  claim(plan: ServicePlan): void {
    const { key } = plan.port;
    for (const { name } of claimedFrontends(plan)) {
      const known = this.#claimants.get(name);
      // Nearly always; a start does this for every service port.
      if (known === undefined) this.#claimants.set(name, key);
      if (known === undefined || known === key) continue;
      const others = this.#claimantsOf(name).filter((other) => other !== key);
      this.#claimants.set(name, [...others, key]);
      this.#contested.add(name);
    }
  }

  /** Withdraws the plan's claims. Returns the keys of the other claimants of its destinations. */
  release(plan: ServicePlan): string[] {
    const rivals: string[] = [];
    for (const { name } of claimedFrontends(plan)) {
      const others = this.#claimantsOf(name).filter((other) => other !== plan.port.key);
      const [only] = others;
      if (only === undefined) this.#claimants.delete(name);
      else this.#claimants.set(name, others.length === 1 ? only : others);
      if (others.length < 2) this.#contested.delete(name);
      rivals.push(...others);
    }
    return rivals;
  }

  /** Keys of the other service ports that claim a destination of the plan. */
  rivalsOf(plan: ServicePlan): string[] {
    const names = [...claimedFrontends(plan)].map(({ name }) => name);
    return names
      .filter((name) => this.#contested.has(name))
      .flatMap((name) => this.#claimantsOf(name))
      .filter((key) => key !== plan.port.key);
  }

  /** The owner's key for each destination of the plan that another one owns; undefined when the plan owns them all. */
  lostBy(
    plan: ServicePlan,
    plans: ReadonlyMap<string, ServicePlan>,
  ): ReadonlyMap<string, string> | undefined {
    const lost = new Map<string, string>();
    for (const { name } of claimedFrontends(plan)) {
      if (!this.#contested.has(name)) continue;
      const owner = ownerOf(name, this.#claimantsOf(name), plans);
      if (owner !== undefined && owner !== plan.port.key) lost.set(name, owner);
    }
    return lost.size > 0 ? lost : undefined;
  }

  #claimantsOf(name: string): readonly string[] {
    const claimants = this.#claimants.get(name);
    return typeof claimants === 'string' ? [claimants] : (claimants ?? []);
  }
}

function ownerOf(
  name: string,
  keys: readonly string[],
  plans: ReadonlyMap<string, ServicePlan>,
): string | undefined {
  const claims = keys.flatMap((key) => {
    const plan = plans.get(key);
    return plan ? [...claimedFrontends(plan)].filter((frontend) => frontend.name === name) : [];
  });
  return claims.sort(compareClaims)[0]?.plan.port.key;
}

/** Why another claimant did not get the owner's destination, as a phrase about that claimant. */
export function precedenceOf(owner: Frontend, other: Frontend): string {
  const [a, b] = [owner.plan.port, other.plan.port];
  if (rankOf[owner.kind] !== rankOf[other.kind]) return `${article(owner)} comes before ${article(other)}`;
  if (a.createdAt !== b.createdAt) return 'its Service is newer';
  return a.uid === b.uid ? 'its name comes later' : 'its Service is as old, and its UID comes later';
}

function article({ kind }: Frontend): string {
  return `${kind === 'external IP' ? 'an' : 'a'} ${kind}`;
}

/** Compares two claims to one destination. Negative when `a` comes first: the claim that comes first wins. */
export function compareClaims(a: Frontend, b: Frontend): number {
  const byKind = rankOf[a.kind] - rankOf[b.kind];
  return byKind === 0 ? compareAge(a.plan.port, b.plan.port) : byKind;
}

function compareAge(a: ServicePort, b: ServicePort): number {
  const byAge = ageRank(a) - ageRank(b);
  if (byAge !== 0) return byAge;
  if (a.uid !== b.uid) return a.uid < b.uid ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/** A Service without a creation timestamp counts as the newest. */
function ageRank({ createdAt }: ServicePort): number {
  return createdAt === 0 ? Number.MAX_SAFE_INTEGER : createdAt;
}
