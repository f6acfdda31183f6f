import type { ConntrackReconciler } from '../conntrack/reconciler.ts';
import type { UDPTarget } from '../conntrack/udp-targets.ts';
import { frontendsOf } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { FlowReconciler } from './family-proxier.ts';

/**
 * Derives UDP targets from plans for the conntrack reconciler. `repliers` returns the addresses that reply for a
 * service port when these are not its endpoints.
 */
export function reconcileFlows(
  reconciler: ConntrackReconciler,
  repliers?: (key: string) => ReadonlySet<string>,
): FlowReconciler {
  return {
    note(keys, plans) {
      for (const key of keys) reconciler.update(key, udpTarget(plans.get(key), repliers?.(key)));
    },
    reconcile: () => reconciler.reconcile(),
    close: () => reconciler.close(),
  };
}

/** Ignores readiness, policy and topology: a flow to an endpoint that still serves must stay. */
function udpTarget(
  plan: ServicePlan | undefined,
  repliers: ReadonlySet<string> | undefined,
): UDPTarget | undefined {
  if (plan?.port.protocol !== 'UDP') return undefined;
  const frontends = [...frontendsOf(plan)];
  return {
    addresses: frontends.flatMap(({ address }) => (address === '' ? [] : [address])),
    port: plan.port.port,
    nodePort: frontends.find(({ kind }) => kind === 'node port')?.port ?? 0,
    answersAfterLeaving: repliers === undefined,
    serving: repliers ?? new Set(plan.endpoints.filter(({ serving }) => serving).map(({ id }) => id)),
  };
}

/** For a mode that rewrites no flows: there is nothing to remove. */
export const noFlows: FlowReconciler = {
  note() {},
  reconcile() {},
  async close() {},
};
