import type { Endpoint } from '../../model/endpoint.ts';
import type { Frontend } from '../../plan/frontend.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { addressBytes, type Bytes, portBytes } from './bytes.ts';
import { assignSlots } from './slots.ts';
import type { StickyNumbers, StickyPlacement } from './sticky-numbers.ts';

/** An endpoint's address and port, as maps store them. */
export type EndpointBytes = Bytes;

/** A plan and the choices that programming it leaves open: the slot and number of each endpoint. */
export interface Placement {
  readonly plan: ServicePlan;
  /** Each destination once. */
  readonly frontends: readonly Frontend[];
  /** Endpoints under policy Cluster and under policy Local, in the order of their slots. */
  readonly cluster: readonly EndpointBytes[];
  readonly local: readonly EndpointBytes[];
  /** Present with client affinity, and where a hash chooses. */
  readonly sticky?: StickyPlacement;
}

/** What is known of a service port's earlier placement. */
export type EarlierPlacement = Pick<Placement, 'cluster' | 'local' | 'sticky'>;

export const nowhere: EarlierPlacement = { cluster: [], local: [] };

/** Places a plan with as little change against its earlier placement as possible. */
export function place(
  plan: ServicePlan,
  frontends: readonly Frontend[],
  earlier: EarlierPlacement,
  numbers: StickyNumbers,
): Placement {
  const cluster = assignSlots(earlier.cluster, plan.cluster.map(targetOf));
  const local = assignSlots(earlier.local, plan.local.map(targetOf));
  const lists = { plan, frontends, cluster, local };
  if (!isNumbered(plan)) return lists;
  return { ...lists, sticky: numbers.renew(earlier.sticky, new Set([...cluster, ...local])) };
}

/** Whether its endpoints are known by numbers: client affinity remembers them, and the slots of hashes have them. */
export function isNumbered({ port, balance }: ServicePlan): boolean {
  return port.affinitySeconds > 0 || balance !== 'default';
}

export function targetOf(endpoint: Endpoint): EndpointBytes {
  return addressBytes(endpoint.ip) + portBytes(endpoint.port);
}
