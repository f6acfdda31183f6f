import type { RecentClients } from '../../kernel/xtables/recent-clients.ts';
import type { Clock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { BindingSink } from '../inspection.ts';
import { endpointChain, serviceNames } from './names.ts';

/** Reads the clients that each endpoint's list remembers. The kernel removes expired ones only when it adds others. */
export async function readBindings(
  recent: Pick<RecentClients, 'list'>,
  plans: readonly ServicePlan[],
  sink: BindingSink,
  clock: Clock,
): Promise<void> {
  const timeSlice = new TimeSlice(clock);
  for (const { port, all } of plans) {
    const names = serviceNames(port);
    for (const { id: endpoint } of all) {
      for (const { address: client, secondsSince } of recent.list(endpointChain(names, endpoint))) {
        const secondsLeft = Math.round(port.affinitySeconds - secondsSince);
        if (secondsLeft > 0) sink.add({ service: port.key, client, endpoint, secondsLeft });
      }
      if (timeSlice.isSpent) await timeSlice.yield();
    }
  }
}
