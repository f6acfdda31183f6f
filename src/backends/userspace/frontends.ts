import type { Family } from '../../model/ip.ts';
import { distinctFrontends, type Frontend } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';

/** The frontends that this mode can serve: SCTP is not among them. */
export function servableFrontends(plan: ServicePlan): Frontend[] {
  return plan.port.protocol === 'SCTP' ? [] : distinctFrontends(plan);
}

/** The address that stands for all of a family. */
export function anyAddress(family: Family): string {
  return family === 'IPv4' ? '0.0.0.0' : '::';
}
