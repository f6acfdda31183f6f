import type { ServicePlan } from '../../../plan/service-plan.ts';
import { servableFrontends } from '../frontends.ts';
import { type Outlet, outletsOfAll } from '../outlets.ts';
import { type Served, signatureOf } from '../placing.ts';
import { type ElementSettings, elementsOf, type PortalElement } from '../portals/elements.ts';
import type { ProxySocket } from '../proxy-sockets.ts';

/** In place of the port of a socket that is yet to be opened. */
export const portToBeOpened = 0;

/** How a service port is to be served by portals. */
export interface WantedService {
  readonly key: string;
  readonly plan: ServicePlan;
  readonly elements: readonly PortalElement[];
  /** The socket of each outlet; undefined where one is to be opened. */
  readonly sockets: ReadonlyMap<Outlet, ProxySocket | undefined>;
}

/** What a sync of these plans would establish, given what is there. */
export function wantedServices(
  plans: ReadonlyMap<string, ServicePlan>,
  served: ReadonlyMap<string, Served>,
  settings: ElementSettings,
): WantedService[] {
  return [...plans.values()].map((plan) => wantedService(plan, served.get(plan.port.key), settings));
}

function wantedService(
  plan: ServicePlan,
  before: Served | undefined,
  settings: ElementSettings,
): WantedService {
  const { key } = plan.port;
  const frontends = servableFrontends(plan);
  const kept = before?.signature === signatureOf(plan) ? before.sockets : undefined;
  const outlets = [...outletsOfAll(frontends, settings)];
  const sockets = new Map(outlets.map((outlet) => [outlet, kept?.get(outlet)] as const));
  const proxyPorts = new Map(
    [...sockets].map(([outlet, socket]) => [outlet, socket?.port ?? portToBeOpened]),
  );
  const elements = elementsOf({ plan, frontends, proxyPorts }, settings);
  return { key, plan, elements: elements.filter((element) => !isUnknownProxyPort(element)), sockets };
}

/** Whether it stands for a socket that is not open yet. */
function isUnknownProxyPort({ set, element: { key } }: PortalElement): boolean {
  return set === 'proxy-ports' && key[4] === 0 && key[5] === 0;
}
