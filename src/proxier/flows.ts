import type { ConntrackReconciler } from '../conntrack/reconciler.ts';
import type { UDPTarget } from '../conntrack/udp-targets.ts';
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
  const { clusterIP, loadBalancerVIPs, port, nodePort } = plan.port;
  return {
    addresses: [clusterIP, ...loadBalancerVIPs, ...plan.externalIPs],
    port,
    nodePort,
    serving: answerers ?? new Set(plan.endpoints.filter(({ serving }) => serving).map(({ id }) => id)),
  };
}

/** Where no flow is rewritten there is nothing to remove. */
export const noFlows: FlowReconciler = {
  note() {},
  reconcile() {},
  async close() {},
};
