import type { ServicePlan } from '../../../plan/service-plan.ts';
import { type Frontend, frontendName, frontendsOf } from '../frontends.ts';
import type { Holders } from '../holders.ts';

/** What a backend serves, by service port key, and who has which frontend. */
export interface Holdings<Served> {
  readonly served: ReadonlyMap<string, Served>;
  readonly holders: Holders;
}

/** A service port and the frontends that it gets. */
export interface Claimed {
  readonly key: string;
  readonly plan: ServicePlan;
  readonly frontends: readonly Frontend[];
}

/**
 * The frontends that a sync of these plans would give to each of them: what is given up is free for others, what two
 * ask for stays with who has it. Whether another program has one only shows when it is tried.
 */
export function claimedFrontends(
  plans: ReadonlyMap<string, ServicePlan>,
  { served, holders: current }: Holdings<unknown>,
): Claimed[] {
  const holders = current.copy();
  const keys = [...new Set([...served.keys(), ...plans.keys()])].sort();
  const wanted = new Map(
    [...plans].map(([key, plan]) => [key, plan.port.protocol === 'SCTP' ? [] : frontendsOf(plan)]),
  );
  for (const key of keys) holders.retain(key, new Set(wanted.get(key)?.map(frontendName)));
  return keys.flatMap((key) => {
    const plan = plans.get(key);
    const frontends = wanted.get(key)?.filter((frontend) => holders.claim(frontendName(frontend), key));
    return plan && frontends ? [{ key, plan, frontends }] : [];
  });
}
