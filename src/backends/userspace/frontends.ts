import type { Family } from '../../model/ip.ts';
import { distinctFrontends, type Frontend } from '../../plan/frontend.ts';
import type { EndpointList, ServicePlan } from '../../plan/service-plan.ts';

/** The frontends that this mode can serve: SCTP is not among them. */
export function servableFrontends(plan: ServicePlan): Frontend[] {
  return plan.port.protocol === 'SCTP' ? [] : distinctFrontends(plan);
}

/** Lists that any of the frontends sends connections to. */
export function listsOf(frontends: readonly Frontend[]): Set<EndpointList> {
  return new Set(
    frontends.flatMap(({ endpoints, nearEndpoints }) => [endpoints ?? [], nearEndpoints ?? []].flat()),
  );
}

/** The address that stands for all of a family. */
export function anyAddress(family: Family): string {
  return family === 'IPv4' ? '0.0.0.0' : '::';
}
