import { formatRealServer, formatVirtualServer } from '../../kernel/ipvs/objects.ts';
import type { PersistenceTemplate, PersistentCall } from '../../kernel/ipvs/persistence.ts';
import { joinHostPort } from '../../model/ip.ts';
import { distinctFrontends } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { BindingSink } from '../inspection.ts';

/**
 * Passes on the templates of these plans. A template holds for one virtual server; one whose real server takes no new
 * connections binds nobody.
 */
export async function readBindings(
  templates: AsyncIterable<PersistenceTemplate>,
  plans: readonly ServicePlan[],
  sink: BindingSink,
): Promise<void> {
  const planOf = planFinder(plans);
  for await (const { call, secondsLeft, ...real } of templates) {
    const plan = planOf(call);
    const endpoint = formatRealServer(real);
    if (!plan?.all.some(({ id }) => id === endpoint)) continue;
    const { client, address, port } = call;
    const frontend = joinHostPort(address, port);
    sink.add({ service: plan.port.key, client, endpoint, secondsLeft, frontend });
  }
}

/** Finds the plan that a virtual server belongs to; a node port has one at many addresses of the node. */
function planFinder(plans: readonly ServicePlan[]): (call: PersistentCall) => ServicePlan | undefined {
  const owners = new Map<string, ServicePlan>();
  for (const plan of plans) {
    for (const frontend of distinctFrontends(plan)) owners.set(formatVirtualServer(frontend), plan);
  }
  return (call) =>
    owners.get(formatVirtualServer(call)) ?? owners.get(formatVirtualServer({ ...call, address: '' }));
}
