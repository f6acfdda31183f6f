import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Packet } from '../../src/backends/inspection.ts';
import { ask } from '../../src/backends/iptables/ask.ts';
import type { IptablesSettings } from '../../src/backends/iptables/settings.ts';
import { type Family, families } from '../../src/model/ip.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { FakeClock } from '../fake-clock.ts';
import { assertFate, type ExpectedFate, isAdmitted, isInAny, outside } from '../plan/expected-fate.ts';
import { plansOf, recordedClusters } from '../plan/recorded-cluster.ts';
import { type RecordedIptablesCluster, recordedAddresses, recordedSettings } from './compiled-cluster.ts';
import { recordedTables } from './recorded-tables.ts';

for (const { name, cluster } of recordedClusters()) {
  for (const family of families) {
    test(`${name} ${family}: packets go where the plans say`, () =>
      askAll(cluster as RecordedIptablesCluster, family));
  }
}

async function askAll(cluster: RecordedIptablesCluster, family: Family): Promise<void> {
  const settings = recordedSettings(cluster, family);
  const plans = await plansOf(cluster, family);
  const { nat, filter } = recordedTables(cluster, family);
  const addresses = new Set(recordedAddresses(cluster));
  const node = { tables: { nat, filter }, addresses, clock: new FakeClock() };
  for (const plan of plans) {
    for (const { destination, port, expected, origin = { interface: 'eth0' } } of questions(plan, settings)) {
      if (isContested(plans, plan, destination, port)) continue;
      const packet: Packet = {
        family,
        protocol: plan.port.protocol,
        source: origin === 'node' ? settings.nodeIP : outside[family],
        destination,
        port,
        origin,
      };
      const { fate, evidence } = await ask(packet, node);
      const about = `${plan.port.key} ${destination}:${port} ${origin}\n${evidence.join('\n')}`;
      assertFate(fate, expected, about);
      if (fate.action !== 'pass') assert.ok(evidence.length > 0, about);
    }
  }
}

interface Question {
  readonly destination: string;
  readonly port: number;
  readonly origin?: Packet['origin'];
  readonly expected: ExpectedFate;
}

/** Packets from outside to every address of a service port, and packets of the node to the cluster IP. */
function questions(plan: ServicePlan, settings: IptablesSettings): Question[] {
  const { port } = plan;
  const isRemote = settings.masqueradeAll || settings.localDetector.kind !== 'none';
  const internal = expectation(plan, 'internal', isRemote);
  const external = expectation(plan, 'external', !port.externalPolicyLocal);
  const loadBalancer = isAdmitted(port.sourceRanges, outside[port.family]) ? external : filtered(plan);
  return [
    { destination: port.clusterIP, port: port.port, expected: internal },
    { destination: port.clusterIP, port: port.port, expected: internal, origin: 'node' },
    ...plan.externalIPs.map((destination) => ({ destination, port: port.port, expected: external })),
    ...port.loadBalancerVIPs.map((destination) => ({
      destination,
      port: port.port,
      expected: loadBalancer,
    })),
    ...(port.nodePort === 0 || !isInAny(settings.nodePortAddresses.cidrs, settings.nodeIP)
      ? []
      : [{ destination: settings.nodeIP, port: port.nodePort, expected: external }]),
    { destination: port.clusterIP, port: 9, expected: { action: 'pass' } },
  ];
}

function expectation(plan: ServicePlan, kind: 'internal' | 'external', masquerade: boolean): ExpectedFate {
  const decision = plan[kind];
  if (decision.action !== 'forward') return { action: decision.action };
  const endpoints = plan[decision.endpoints].map(({ id }) => id);
  return { action: 'forward', endpoints, masquerade, affinitySeconds: plan.port.affinitySeconds };
}

/** Without endpoints there is nothing to filter. */
function filtered(plan: ServicePlan): ExpectedFate {
  return { action: plan.hasAnyEndpoints ? 'drop' : 'reject' };
}

/** Whether another service port claims the destination as well, or this one claims it twice. */
function isContested(
  plans: readonly ServicePlan[],
  asked: ServicePlan,
  destination: string,
  port: number,
): boolean {
  const claims = plans.flatMap((plan) => {
    if (plan.port.protocol !== asked.port.protocol) return [];
    const { clusterIP, loadBalancerVIPs, port: number, nodePort } = plan.port;
    const addresses = [clusterIP, ...plan.externalIPs, ...loadBalancerVIPs];
    return [
      ...(number === port ? addresses.filter((address) => address === destination) : []),
      ...(nodePort === port && addresses.includes(destination) ? ['node port'] : []),
    ];
  });
  return claims.length > 1;
}
