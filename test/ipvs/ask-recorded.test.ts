import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fate, Packet } from '../../src/backends/inspection.ts';
import type { IpvsSettings } from '../../src/backends/ipvs/settings.ts';
import type { Endpoint } from '../../src/model/endpoint.ts';
import { cidrContains, type Family, parseCIDR, parseIP } from '../../src/model/ip.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
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

/** A client outside the cluster, and none of the addresses in the recordings. */
const outside: Readonly<Record<Family, string>> = { IPv4: '192.0.2.77', IPv6: '2001:db8:77::7' };

for (const { name, cluster } of recordedIpvsClusters()) {
  for (const family of ['IPv4', 'IPv6'] as const) {
    test(`${name} ${family}: packets go where the plans say, and nothing differs`, () =>
      askAll(cluster, family));
  }
}

async function askAll(cluster: RecordedIpvsCluster, family: Family): Promise<void> {
  const settings = settingsOf(cluster, family);
  const plans = plansOf(cluster, family);
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

interface Expectation {
  readonly action: Fate['action'];
  readonly endpoints?: readonly Endpoint[];
  readonly masquerade?: boolean;
  readonly affinitySeconds?: number;
}

function questions(plan: ServicePlan, settings: IpvsSettings) {
  const { port, cluster, local } = plan;
  const isRemote = settings.masqueradeAll || settings.localDetector.kind !== 'none';
  const to = (endpoints: readonly Endpoint[], masquerade: boolean): Expectation => {
    if (endpoints.length === 0) return { action: 'reject' };
    return { action: 'forward', endpoints, masquerade, affinitySeconds: port.affinitySeconds };
  };
  const internal = to(port.internalPolicyLocal ? local : cluster, isRemote);
  const external = to(
    port.externalPolicyLocal && local.length > 0 ? local : cluster,
    !port.externalPolicyLocal,
  );
  const isAdmitted =
    port.sourceRanges.length === 0 || port.sourceRanges.some((range) => isIn(range, outside[port.family]));
  const guarded: Expectation = isAdmitted ? external : { action: 'drop' };
  const servesHere = settings.nodePortAddresses.cidrs.some((cidr) => isIn(cidr, settings.nodeIP));
  return [
    { destination: port.clusterIP, port: port.port, expected: internal },
    ...plan.externalIPs.map((destination) => ({ destination, port: port.port, expected: external })),
    ...port.loadBalancerVIPs.map((destination) => ({ destination, port: port.port, expected: guarded })),
    ...(port.nodePort !== 0 && servesHere
      ? [{ destination: settings.nodeIP, port: port.nodePort, expected: external }]
      : []),
    { destination: port.clusterIP, port: 9, expected: { action: 'reject' } as Expectation },
    { destination: outside[port.family], port: port.port, expected: { action: 'pass' } as Expectation },
  ];
}

function isIn(range: string | Parameters<typeof cidrContains>[0], address: string): boolean {
  const cidr = typeof range === 'string' ? parseCIDR(range) : range;
  const ip = parseIP(address);
  return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip);
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

function assertFate(fate: Fate, expected: Expectation, about: string): void {
  assert.equal(fate.action, expected.action, about);
  if (fate.action !== 'forward') return;
  const { endpoints = [], masquerade, affinitySeconds } = expected;
  assert.deepEqual(
    fate.targets.map(({ endpoint }) => endpoint),
    endpoints.map(({ id }) => id),
    about,
  );
  for (const target of fate.targets) {
    assert.equal(target.probability, 1 / endpoints.length, about);
    assert.equal(target.masquerade, masquerade, about);
  }
  assert.equal(fate.affinitySeconds, affinitySeconds, about);
}
