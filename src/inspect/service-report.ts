import type { Fate } from '../backends/inspection.ts';
import type { DirectService } from '../backends/packet-rules.ts';
import type { Endpoint } from '../model/endpoint.ts';
import type { Placement, Placements } from '../model/placement.ts';
import type { Balance } from '../model/service-port.ts';
import { lostFrontends } from '../plan/frontend.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { endpointReason } from '../plan/reasons.ts';
import type { Decision, ServicePlan } from '../plan/service-plan.ts';
import { listShares } from '../plan/shares.ts';
import type { DecisionReport, EndpointReport, ServiceReport } from './api.ts';
import type { FamilyView } from './family-view.ts';
import { timeText } from './status-report.ts';

/** What differs between modes in the report of a service port. */
export interface ModeParts {
  /** Where frontends are served, by service port, while packets are not captured. */
  readonly direct?: DirectReports | undefined;
  /** The kernel's scheduler that hashes clients, in modes whose hash is the kernel's. */
  readonly hashScheduler?: string | undefined;
}

/** The settings of one service port, and the decisions of its plan. */
export function serviceReport(plan: ServicePlan, { direct, hashScheduler }: ModeParts = {}): ServiceReport {
  const { port, topology } = plan;
  return {
    service: port.key,
    family: port.family,
    namespace: port.namespace,
    name: port.name,
    uid: port.uid,
    creationTime: port.createdAt === 0 ? null : timeText(port.createdAt * 1000),
    portName: port.portName,
    protocol: port.protocol,
    clusterIP: port.clusterIP,
    port: port.port,
    nodePort: port.nodePort,
    externalIPs: plan.externalIPs,
    loadBalancerIPs: port.loadBalancerVIPs,
    loadBalancerSourceRanges: port.sourceRanges,
    healthCheckNodePort: port.healthCheckNodePort,
    affinitySeconds: port.affinitySeconds,
    ...(port.balance !== 'default' && { balance: plan.balance === 'default' ? null : plan.balance }),
    ...(plan.balance !== 'default' && hashScheduler !== undefined && { hashScheduler }),
    ...(port.resetsDeparted && { resetsDeparted: true }),
    ...(port.unsupportedBalance && { unsupportedBalance: port.unsupportedBalance }),
    ...(port.unsupportedReset && { unsupportedReset: true }),
    internalTrafficPolicy: port.internalPolicyLocal ? 'Local' : 'Cluster',
    externalTrafficPolicy: port.externalPolicyLocal ? 'Local' : 'Cluster',
    internal: decisionReport(plan.internal),
    external: plan.externallyAccessible ? decisionReport(plan.external) : null,
    topology: { mode: topology.mode, reason: topology.reason },
    ...(plan.lost && { lost: lostReports(plan) }),
    endpoints: { known: plan.endpoints.length, cluster: plan.cluster.length, local: plan.local.length },
    ...(direct && { direct: { reason: direct.reason, places: direct.places.get(port.key) ?? [] } }),
  };
}

type DirectReport = NonNullable<ServiceReport['direct']>;

export interface DirectReports {
  readonly reason: string;
  /** By key of the service port. */
  readonly places: ReadonlyMap<string, DirectReport['places']>;
}

/** Undefined while packets are captured. */
export function directReports(direct: DirectService | undefined): DirectReports | undefined {
  if (!direct) return undefined;
  const groups = Map.groupBy(direct.places, ({ key }) => key);
  const places = [...groups].map(([key, group]): [string, DirectReport['places']] => [
    key,
    group.map(({ frontend, address, note }) => ({ frontend, address: address || null, note })),
  ]);
  return { reason: direct.reason, places: new Map(places) };
}

function lostReports(plan: ServicePlan): NonNullable<ServiceReport['lost']> {
  return [...lostFrontends(plan)].map(([{ kind, name }, owner]) => ({ frontend: `${kind} ${name}`, owner }));
}

function decisionReport(decision: Decision): DecisionReport {
  const { action, reason } = decision;
  return action === 'forward' ? { action, endpoints: decision.endpoints, reason } : { action, reason };
}

/** Each of these endpoints of one service port, used or not, with the reason. `balance`: how one is chosen. */
export function endpointReports(
  plan: PlannedPort,
  endpoints: readonly Endpoint[],
  { byEndpoint }: Placements,
  balance: Balance,
): EndpointReport[] {
  const cluster = listShares(plan, 'cluster', balance);
  const local = listShares(plan, 'local', balance);
  return endpoints.map((endpoint) => ({
    service: plan.port.key,
    family: plan.port.family,
    endpoint: endpoint.id,
    ...byEndpoint.get(endpoint.id),
    local: endpoint.isLocal,
    ready: endpoint.ready,
    serving: endpoint.serving,
    terminating: endpoint.terminating,
    ...(endpoint.zoneHints && { zoneHints: endpoint.zoneHints }),
    ...(endpoint.nodeHints && { nodeHints: endpoint.nodeHints }),
    ...usage(cluster.get(endpoint.id), local.get(endpoint.id)),
    reason: endpointReason(plan, endpoint),
  }));
}

/** The sets that contain an endpoint, with its share of each; undefined stands for a set without it. */
function usage(
  cluster: number | undefined,
  local: number | undefined,
): Pick<EndpointReport, 'usedBy' | 'expectedShares'> {
  const expectedShares = {
    ...(cluster !== undefined && { cluster }),
    ...(local !== undefined && { local }),
  };
  const usedBy = (['cluster', 'local'] as const).filter((set) => set in expectedShares);
  return usedBy.length > 0 ? { usedBy, expectedShares } : { usedBy };
}

/** Where the endpoints of these fates run, as the slices of the service port say it. */
export function fatePlacements(
  view: Pick<FamilyView, 'plans' | 'placements'>,
  service: string | undefined,
  fates: readonly (Fate | undefined)[],
): Readonly<Record<string, Placement>> {
  const plan = service === undefined ? undefined : view.plans.get(service);
  if (!plan) return {};
  const { byEndpoint } = view.placements(plan.port);
  const targets = fates.flatMap((fate) => (fate?.action === 'forward' ? fate.targets : []));
  return Object.fromEntries(targets.map(({ endpoint }) => [endpoint, byEndpoint.get(endpoint) ?? {}]));
}
