import { loadMode } from '../../app/modes.ts';
import { nodeFactsOf } from '../../app/node-facts.ts';
import { describeNode, modeContext } from '../../app/start.ts';
import { decodeConfig } from '../../config/decode.ts';
import { applyPlatformDefaults } from '../../config/defaults.ts';
import { FeatureGates } from '../../config/feature-gates.ts';
import { validated } from '../../config/validate.ts';
import type { EndpointReport, NodeReport, ServiceReport, StatusReport } from '../../inspect/api.ts';
import type { InspectedFamily } from '../../inspect/inspector.ts';
import { systemClock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { Endpoint } from '../../model/endpoint.ts';
import { type Family, formatIP, splitIPPort } from '../../model/ip.ts';
import { detectNodeAddresses } from '../../model/node-ips.ts';
import type { Placement, Placements } from '../../model/placement.ts';
import type { ServicePort } from '../../model/service-port.ts';
import { silentLogger } from '../../obs/log.ts';
import { Planner, type PlannerInput } from '../../plan/planner.ts';
import { viewOfPlans } from '../planned-source.ts';

/** What a recorded proxy reported about itself. */
export interface Recorded {
  readonly status: StatusReport;
  readonly node: NodeReport;
  readonly services: readonly ServiceReport[];
  readonly endpoints: readonly EndpointReport[];
  /** The answer of /configz. */
  readonly configz: string;
}

const NO_KERNEL = 'the archive has decisions and rules, but no kernel that could be asked';

/** Plans again from recorded Services and endpoints, as the recorded proxy did. Rejects when the configuration is unusable. */
export async function replan(recorded: Recorded): Promise<InspectedFamily[]> {
  const { status, node } = recorded;
  const { config, gates } = await configOf(recorded.configz);
  const mode = await loadMode(config.mode);
  const families = status.families.map(({ family }) => family);
  const addresses = detectNodeAddresses(node.nodeIPs, config.bindAddress);
  const start = describeNode(
    {
      completed: { config, gates, modeDefaulted: false },
      mode,
      nodeStart: { nodeIPs: node.nodeIPs, podCIDRs: node.podCIDRs },
      addresses,
      logger: silentLogger,
    },
    new Set(families),
  );
  const context = {
    nodeName: node.nodeName,
    zone: node.zone,
    allowExternalIPs: gates.enabled('AllowServiceExternalIPs'),
  };
  return Promise.all(
    status.families.map(async ({ family, serviceCIDRs, endpoints }) => {
      const planner = new Planner();
      await planner.apply('all', inputOf(recorded, family), context, new TimeSlice(systemClock));
      return {
        view: viewOfPlans({
          family,
          plans: planner.plans,
          placements: (port) => recordedPlacements(recorded, port),
          serviceCIDRs,
          totalEndpoints: endpoints,
        }),
        nodeIP: addresses.ips[family],
        rules: mode.packetRules(modeContext(family, start)),
        facts: () => nodeFactsOf(family, start, node.addresses, serviceCIDRs),
        kernel: NO_KERNEL,
        interfaceTowards: async () => '',
      };
    }),
  );
}

async function configOf(configz: string) {
  const { 'kubeproxy.config.k8s.io': inUse } = JSON.parse(configz) as Record<string, object>;
  const head = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration' };
  const { config: draft } = await decodeConfig(JSON.stringify({ ...inUse, ...head }));
  const { config } = applyPlatformDefaults(draft);
  const gates = FeatureGates.of(config.featureGates);
  return { config: validated(config, gates), gates };
}

function inputOf({ services, endpoints }: Recorded, family: Family): PlannerInput {
  const ports = Map.groupBy(
    services.filter((service) => service.family === family).map(portOf),
    ({ namespace, name }) => `${namespace}/${name}`,
  );
  const byPort = Map.groupBy(
    endpoints.filter((endpoint) => endpoint.family === family),
    ({ service }) => service,
  );
  return {
    serviceNames: () => ports.keys(),
    service: (name) => ({
      ports: ports.get(name) ?? [],
      endpoints: ({ key }) =>
        (byPort.get(key) ?? []).map(endpointOf).sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)),
    }),
  };
}

function recordedPlacements({ endpoints }: Recorded, { key, family }: ServicePort): Placements {
  const ofPort = endpoints.filter((each) => each.service === key && each.family === family);
  return { byEndpoint: new Map(ofPort.map((each) => [each.endpoint, placementOf(each)])), slices: [] };
}

function placementOf({ pod, node, zone }: EndpointReport): Placement {
  return {
    ...(pod !== undefined && { pod }),
    ...(node !== undefined && { node }),
    ...(zone !== undefined && { zone }),
  };
}

function portOf(report: ServiceReport): ServicePort {
  const { service, creationTime, loadBalancerIPs, loadBalancerSourceRanges, ...same } = report;
  return {
    key: service,
    namespace: same.namespace,
    name: same.name,
    uid: same.uid,
    createdAt: creationTime === null ? 0 : Date.parse(creationTime) / 1000,
    portName: same.portName,
    protocol: same.protocol,
    family: same.family,
    clusterIP: same.clusterIP,
    port: same.port,
    nodePort: same.nodePort,
    affinitySeconds: same.affinitySeconds,
    // Null: it has too many endpoints for either hash, so the new plan has none as well.
    balance: same.balance === null ? 'hash' : (same.balance ?? 'default'),
    externalIPs: same.externalIPs,
    loadBalancerVIPs: loadBalancerIPs,
    sourceRanges: loadBalancerSourceRanges,
    externalPolicyLocal: same.externalTrafficPolicy === 'Local',
    internalPolicyLocal: same.internalTrafficPolicy === 'Local',
    healthCheckNodePort: same.healthCheckNodePort,
    resetsDeparted: same.resetsDeparted ?? false,
    unsupportedBalance: same.unsupportedBalance,
    unsupportedReset: same.unsupportedReset ?? false,
  };
}

function endpointOf(report: EndpointReport): Endpoint {
  const { endpoint: id, local: isLocal, ready, serving, terminating, zoneHints, nodeHints } = report;
  const split = splitIPPort(id);
  return {
    id,
    ip: split ? formatIP(split.ip) : '',
    port: split?.port ?? 0,
    isLocal,
    ready,
    serving,
    terminating,
    ...(zoneHints && { zoneHints }),
    ...(nodeHints && { nodeHints }),
  };
}
