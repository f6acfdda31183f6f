import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fate, Packet } from '../../src/backends/inspection.ts';
import { ask } from '../../src/backends/iptables/ask.ts';
import type { IptablesSettings } from '../../src/backends/iptables/settings.ts';
import { FakeClock } from '../../src/lib/fake-clock.ts';
import { cidrContains, type Family, parseCIDR, parseIP } from '../../src/model/ip.ts';
import type { ServicePlan } from '../../src/plan/service-plan.ts';
import { plansOf, recordedClusters } from '../plan/recorded-cluster.ts';
import { type RecordedIptablesCluster, recordedAddresses, recordedSettings } from './compiled-cluster.ts';
import { recordedTables } from './recorded-tables.ts';

/** A client outside the cluster, and none of the addresses in the recordings. */
const outside: Readonly<Record<Family, string>> = { IPv4: '192.0.2.77', IPv6: '2001:db8:77::7' };
const probabilityError = 1e-6;

for (const { name, cluster } of recordedClusters()) {
  for (const family of ['IPv4', 'IPv6'] as const) {
    test(`${name} ${family}: packets go where the plans say`, () =>
      askAll(cluster as RecordedIptablesCluster, family));
  }
}

async function askAll(cluster: RecordedIptablesCluster, family: Family): Promise<void> {
  const settings = recordedSettings(cluster, family);
  const plans = plansOf(cluster, family);
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
  readonly expected: Expectation;
}

interface Expectation {
  readonly action: Fate['action'];
  readonly endpoints?: readonly string[];
  readonly masquerade?: boolean;
  readonly affinitySeconds?: number;
}

/** What comes from outside, to every address of a service port; and what the node sends to the cluster IP. */
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
    ...(port.nodePort === 0 || !servesNodePorts(settings)
      ? []
      : [{ destination: settings.nodeIP, port: port.nodePort, expected: external }]),
    { destination: port.clusterIP, port: 9, expected: { action: 'pass' } },
  ];
}

function expectation(plan: ServicePlan, kind: 'internal' | 'external', masquerade: boolean): Expectation {
  const decision = plan[kind];
  if (decision.action !== 'forward') return { action: decision.action };
  const endpoints = plan[decision.endpoints].map(({ id }) => id);
  return { action: 'forward', endpoints, masquerade, affinitySeconds: plan.port.affinitySeconds };
}

/** Without endpoints there is nothing to filter. */
function filtered(plan: ServicePlan): Expectation {
  return { action: plan.hasAnyEndpoints ? 'drop' : 'reject' };
}

function isAdmitted(ranges: readonly string[], client: string): boolean {
  return ranges.length === 0 || ranges.some((range) => isIn(range, client));
}

function servesNodePorts({ nodePortAddresses, nodeIP }: IptablesSettings): boolean {
  const ip = parseIP(nodeIP);
  return ip !== undefined && nodePortAddresses.cidrs.some((cidr) => cidrContains(cidr, ip));
}

function isIn(range: string, address: string): boolean {
  const [cidr, ip] = [parseCIDR(range), parseIP(address)];
  return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip);
}

/** Some other service port claims the destination as well, or an external one claims it twice. */
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

function assertFate(fate: Fate, expected: Expectation, about: string): void {
  assert.equal(fate.action, expected.action, about);
  if (fate.action !== 'forward') return;
  const { endpoints = [] } = expected;
  assert.deepEqual(
    fate.targets.map(({ endpoint }) => endpoint),
    endpoints,
    about,
  );
  for (const { probability, masquerade } of fate.targets) {
    assert.ok(Math.abs(probability - 1 / endpoints.length) < probabilityError, about);
    assert.equal(masquerade, expected.masquerade, about);
  }
  const sum = fate.targets.reduce((total, { probability }) => total + probability, 0);
  assert.ok(Math.abs(sum - 1) < probabilityError, about);
  assert.equal(fate.affinitySeconds, expected.affinitySeconds, about);
}
