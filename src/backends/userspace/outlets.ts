import type { KeptSources } from '../../forwarder/forwarder.ts';
import type { Family } from '../../model/ip.ts';
import type { LocalDetector } from '../../model/local-detector.ts';
import { type Frontend, masqueradedElsewhere } from '../../plan/frontend.ts';
import type { EndpointList, ServicePlan } from '../../plan/service-plan.ts';
import type { UserspaceSettings } from './settings.ts';

/**
 * Clients whose address endpoints see. `for pods`: those in the network of pods, which their address tells; `for all`: all
 * that the rules send there. `at the cluster IP`: only those that connect to the cluster IP.
 */
const keptClients = [
  'for pods',
  'for all',
  'for pods at the cluster IP',
  'for all at the cluster IP',
] as const;
type KeptClients = (typeof keptClients)[number];

/** A list of endpoints, and the clients whose address they see: nobody's, or these. Each has a proxy port of its own. */
export type Outlet = EndpointList | `${EndpointList}, source kept ${KeptClients}`;

/** The settings that say whose address is kept. */
export type SourceSettings = Pick<
  UserspaceSettings,
  'family' | 'keepsSource' | 'masqueradeAll' | 'localDetector'
>;

/** Where connections to one frontend go. Undefined `outside`: nowhere. Undefined `near` or `pods`: where all others go. */
export interface Outlets {
  readonly outside: Outlet | undefined;
  /** For this node itself and its pods. */
  readonly near: Outlet | undefined;
  /** For pods of this node alone, where only the interface tells who is one. */
  readonly pods: Outlet | undefined;
}

export function listOf(outlet: Outlet): EndpointList {
  return outlet.startsWith('local') ? 'local' : 'cluster';
}

/** Whose address endpoints see; undefined when they see the node's for all clients. */
export function keptSources(
  outlet: Outlet,
  clusterIP: string,
  { family, localDetector }: SourceSettings,
): KeptSources | undefined {
  const kept = keptClients.find((clients) => outlet.endsWith(clients));
  if (kept === undefined) return undefined;
  const isOfPods = kept.startsWith('for pods') && localDetector.kind === 'cidr';
  const of = isOfPods ? localDetector.cidr : wholeNetwork(family);
  return { of, ...(kept.endsWith('at the cluster IP') && { at: clusterIP }) };
}

export function outletsOf(frontend: Frontend, settings: SourceSettings): Outlets {
  const { endpoints, nearEndpoints, plan } = frontend;
  if (!settings.keepsSource) return { outside: endpoints, near: nearEndpoints, pods: undefined };
  switch (frontend.masqueraded) {
    case 'all':
      return { outside: masqueradedOutlet(plan, endpoints, settings), near: undefined, pods: undefined };
    case 'all but pods':
      return atClusterIP(frontend, settings);
    case 'this node':
      return underPolicyLocal(frontend, settings);
  }
}

/** The outlets that any of the frontends uses. */
export function outletsOfAll(frontends: readonly Frontend[], settings: SourceSettings): Set<Outlet> {
  return new Set(
    frontends.flatMap((frontend) => {
      const { outside, near, pods } = outletsOf(frontend, settings);
      return [outside, near, pods].filter((one) => one !== undefined);
    }),
  );
}

function atClusterIP({ endpoints, plan }: Frontend, settings: SourceSettings): Outlets {
  const { masqueradeAll, localDetector } = settings;
  const kept = keptAtClusterIP(settings);
  const elsewhere = { near: undefined, pods: undefined };
  if (kept && isShared(plan, settings)) {
    return { outside: outlet(endpoints, `${kept} at the cluster IP`), ...elsewhere };
  }
  const podsAlone =
    masqueradeAll || isKnownByAddress(localDetector) ? undefined : outlet(endpoints, 'for all');
  return { outside: outlet(endpoints, kept), near: undefined, pods: podsAlone };
}

/** Everybody's address is kept, but not that of this node itself. */
function underPolicyLocal({ endpoints, nearEndpoints, plan }: Frontend, settings: SourceSettings): Outlets {
  const outside = outlet(endpoints, 'for all');
  const nearby = nearEndpoints ?? endpoints;
  switch (settings.localDetector.kind) {
    case 'none':
      return { outside, near: masqueradedOutlet(plan, nearby, settings), pods: undefined };
    case 'cidr':
      return { outside, near: outlet(nearby, 'for pods'), pods: undefined };
    case 'interface':
    case 'prefix':
      return { outside, near: nearby, pods: outlet(nearby, 'for all') };
  }
}

/** The outlet of clients that are masqueraded at an address that is not the cluster IP. */
function masqueradedOutlet(
  plan: ServicePlan,
  list: EndpointList | undefined,
  settings: SourceSettings,
): Outlet | undefined {
  const kept = list === 'cluster' && isShared(plan, settings) ? keptAtClusterIP(settings) : undefined;
  return outlet(list, kept && `${kept} at the cluster IP`);
}

/**
 * Whether one proxy port serves the cluster IP, where addresses are kept, and other addresses, where they are not. A
 * connection of TCP can be asked for the address that the client connected to; a datagram cannot. This does not depend on
 * whether there are other addresses: a service port that gets one needs no other proxy port.
 */
function isShared(plan: ServicePlan, settings: SourceSettings): boolean {
  const { port, internal } = plan;
  const hasMasqueraded = masqueradedElsewhere(plan) === 'all' || settings.localDetector.kind === 'none';
  const usesCluster = internal.action === 'forward' && internal.endpoints === 'cluster';
  return port.protocol === 'TCP' && port.clusterIP !== '' && hasMasqueraded && usesCluster;
}

/**
 * The clients whose address is kept at cluster IPs. Undefined if nobody's is, and if only the interface tells who is a pod.
 * Without a setting that tells pods from other clients, nobody is masqueraded.
 */
function keptAtClusterIP({
  masqueradeAll,
  localDetector,
}: SourceSettings): 'for pods' | 'for all' | undefined {
  if (masqueradeAll || !isKnownByAddress(localDetector)) return undefined;
  return localDetector.kind === 'cidr' ? 'for pods' : 'for all';
}

/** Whether a client's address decides whether it is a pod. With `none`, no client counts as a pod. */
function isKnownByAddress({ kind }: LocalDetector): boolean {
  return kind === 'cidr' || kind === 'none';
}

function outlet(list: EndpointList | undefined, kept: KeptClients | undefined): Outlet | undefined {
  return list && kept ? `${list}, source kept ${kept}` : list;
}

/** All addresses of a family. */
function wholeNetwork(family: Family): string {
  return family === 'IPv4' ? '0.0.0.0/0' : '::/0';
}
