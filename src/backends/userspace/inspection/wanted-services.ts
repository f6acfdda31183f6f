import type { EndpointList, ServicePlan } from '../../../plan/service-plan.ts';
import { listsOf, servableFrontends } from '../frontends.ts';
import { type Served, signatureOf } from '../placing.ts';
import { elementsOf, type PortalElement } from '../portals/elements.ts';
import type { ProxySocket } from '../proxy-sockets.ts';

/** In place of the port of a socket that is yet to be opened. */
export const portToBeOpened = 0;

/** How a service port is to be served by portals. */
export interface WantedService {
  readonly key: string;
  readonly plan: ServicePlan;
  readonly elements: readonly PortalElement[];
  /** The socket that serves each list; undefined where one is to be opened. */
  readonly sockets: ReadonlyMap<EndpointList, ProxySocket | undefined>;
}

/** What a sync of these plans would establish, given what is there. */
export function wantedServices(
  plans: ReadonlyMap<string, ServicePlan>,
  served: ReadonlyMap<string, Served>,
  nodeIP: string,
): WantedService[] {
  return [...plans.values()].map((plan) => wantedService(plan, served.get(plan.port.key), nodeIP));
}

function wantedService(plan: ServicePlan, before: Served | undefined, nodeIP: string): WantedService {
  const { key } = plan.port;
  const frontends = servableFrontends(plan);
  const kept = before?.signature === signatureOf(plan) ? before.sockets : undefined;
  const sockets = new Map([...listsOf(frontends)].map((list) => [list, kept?.get(list)] as const));
  const proxyPorts = new Map([...sockets].map(([list, socket]) => [list, socket?.port ?? portToBeOpened]));
  const elements = elementsOf({ plan, frontends, proxyPorts }, nodeIP);
  return { key, plan, elements: elements.filter((element) => !isUnknownProxyPort(element)), sockets };
}

/** Whether it stands for a socket that is not open yet. */
function isUnknownProxyPort({ set, element: { key } }: PortalElement): boolean {
  return set === 'proxy-ports' && key[4] === 0 && key[5] === 0;
}
