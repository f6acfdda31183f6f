import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Packet } from '../../src/backends/inspection.ts';
import type { IpvsSettings } from '../../src/backends/ipvs/settings.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import { type Family, families } from '../../src/model/ip.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { assertFate, type ExpectedFate, isAdmitted, isInAny, outside } from '../plan/expected-fate.ts';
import { plansOf } from '../plan/recorded-cluster.ts';
import { inspectionOf } from './fake-inspection.ts';
import { FakeKernel } from './fake-kernel.ts';
import { Node } from './harness.ts';
import {
  interfaceAddresses,
  type RecordedIpvsCluster,
  recordedIpvsClusters,
  settingsOf,
} from './recorded-cluster.ts';

for (const { name, cluster } of recordedIpvsClusters()) {
  for (const family of families) {
    test(`${name} ${family}: packets go where the plans say, and nothing differs`, () =>
      askAll(cluster, family));
  }
}

async function askAll(cluster: RecordedIpvsCluster, family: Family): Promise<void> {
  const settings = settingsOf(cluster, family);
  const plans = await plansOf(cluster, family);
  const fake = new FakeKernel();
  fake.onNode = interfaceAddresses;
  const node = new Node(settings, fake);
  assert.deepEqual((await node.full(...plans)).refused, []);
  const inspection = inspectionOf(fake, settings);
  const request = {
    plans: new Map(plans.map((plan) => [plan.port.key, plan])),
    serviceCIDRs: [],
    totalEndpoints: 0,
  };
  assert.deepEqual(await inspection.compare(request), []);
  for (const plan of plans) {
    for (const { destination, port, expected } of questions(plan, settings)) {
      if (isContested(plans, plan, destination, port)) continue;
      const { protocol } = plan.port;
      const origin = { interface: 'eth0' };
      const packet: Packet = { family, protocol, source: outside[family], destination, port, origin };
      const { fate, evidence } = await inspection.ask(packet);
      assertFate(fate, expected, `${plan.port.key} ${destination}:${port}\n${evidence.join('\n')}`);
    }
  }
  await node.backend.close();
}

function questions(plan: ServicePlan, settings: IpvsSettings) {
  const { port, cluster, local } = plan;
  const isRemote = settings.masqueradeAll || settings.localDetector.kind !== 'none';
  const to = (endpoints: readonly Endpoint[], masquerade: boolean): ExpectedFate => {
    if (endpoints.length === 0) return { action: 'reject' };
    return {
      action: 'forward',
      endpoints: endpoints.map(({ id }) => id),
      masquerade,
      affinitySeconds: port.affinitySeconds,
    };
  };
  const internal = to(port.internalPolicyLocal ? local : cluster, isRemote);
  const external = to(
    port.externalPolicyLocal && local.length > 0 ? local : cluster,
    !port.externalPolicyLocal,
  );
  const guarded: ExpectedFate = isAdmitted(port.sourceRanges, outside[port.family])
    ? external
    : { action: 'drop' };
  const servesHere = isInAny(settings.nodePortAddresses.cidrs, settings.nodeIP);
  return [
    { destination: port.clusterIP, port: port.port, expected: internal },
    ...plan.externalIPs.map((destination) => ({ destination, port: port.port, expected: external })),
    ...port.loadBalancerVIPs.map((destination) => ({ destination, port: port.port, expected: guarded })),
    ...(port.nodePort !== 0 && servesHere
      ? [{ destination: settings.nodeIP, port: port.nodePort, expected: external }]
      : []),
    { destination: port.clusterIP, port: 9, expected: { action: 'reject' } as ExpectedFate },
    { destination: outside[port.family], port: port.port, expected: { action: 'pass' } as ExpectedFate },
  ];
}

function isContested(
  plans: readonly ServicePlan[],
  asked: ServicePlan,
  destination: string,
  port: number,
): boolean {
  const claims = plans.flatMap((plan) => {
    const { protocol, clusterIP, loadBalancerVIPs, port: number } = plan.port;
    if (protocol !== asked.port.protocol || number !== port) return [];
    return [clusterIP, ...plan.externalIPs, ...loadBalancerVIPs].filter((address) => address === destination);
  });
  return claims.length > 1;
}
