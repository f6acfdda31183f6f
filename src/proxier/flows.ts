import type { ConntrackReconciler } from '../conntrack/reconciler.ts';
import type { UDPTarget } from '../conntrack/udp-targets.ts';
import { frontendsOf } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
import type { FlowReconciler } from './family-proxier.ts';

/** Tells the conntrack reconciler what plans mean for UDP flows. `answerers` are those who answer, if not endpoints. */
export function reconcileFlows(
  reconciler: ConntrackReconciler,
  answerers?: (key: string) => ReadonlySet<string>,
): FlowReconciler {
  return {
    note(keys, plans) {
      for (const key of keys) reconciler.update(key, udpTarget(plans.get(key), answerers?.(key)));
    },
    reconcile: () => reconciler.reconcile(),
    close: () => reconciler.close(),
  };
}

/** Readiness, policy and topology do not count: a flow to an endpoint that still serves is left alone. */
function udpTarget(
  plan: ServicePlan | undefined,
  answerers: ReadonlySet<string> | undefined,
): UDPTarget | undefined {
  if (plan?.port.protocol !== 'UDP') return undefined;
  const frontends = [...frontendsOf(plan)];
  return {
    addresses: frontends.flatMap(({ address }) => (address === '' ? [] : [address])),
    port: plan.port.port,
    nodePort: frontends.find(({ kind }) => kind === 'node port')?.port ?? 0,
    serving: answerers ?? new Set(plan.endpoints.filter(({ serving }) => serving).map(({ id }) => id)),
  };
}

/** Where no flow is rewritten there is nothing to remove. */
export const noFlows: FlowReconciler = {
  note() {},
  reconcile() {},
  async close() {},
};
