import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decoders } from '../../src/kube/decode.ts';
import { createIntern } from '../../src/lib/intern.ts';
import type { Family } from '../../src/model/ip.ts';
import { servicePortName } from '../../src/model/service-port.ts';
import type { PlannedPort } from '../../src/plan/plan.ts';
import { Planner } from '../../src/plan/planner.ts';
import type { Decision, ServicePlan } from '../../src/plan/service-plan.ts';
import { FamilyState } from '../../src/state/family-state.ts';
import { timeSlice } from './time-slice.ts';

interface RawObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
}

/** A cluster as upstream saw it, and the rules that upstream wrote for it. */
export interface RecordedCluster {
  readonly node: RawObject;
  readonly objects: readonly RawObject[];
  readonly expect: Readonly<Record<`${'nat' | 'filter' | 'mangle'}${4 | 6}`, readonly string[]>>;
}

const directory = join(import.meta.dirname, '../vectors/iptables');

export function recordedClusters(): { readonly name: string; readonly cluster: RecordedCluster }[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ name, cluster: JSON.parse(readFileSync(join(directory, name), 'utf8')) }));
}

/** The plans of one family, through the whole of state and plan. */
export async function plansOf(cluster: RecordedCluster, family: Family): Promise<readonly PlannedPort[]> {
  const intern = createIntern();
  const nodeName = cluster.node.metadata.name;
  const zone = cluster.node.metadata.labels?.['topology.kubernetes.io/zone'] ?? '';
  const state = new FamilyState({
    family,
    nodeName,
    startTime: 0,
    onProblem: ({ field, value, fault }) => {
      throw new Error(`${field}: ${value} ${fault}`);
    },
  });
  for (const raw of cluster.objects) {
    // The watch asks the API server to omit these.
    if (raw.metadata.labels?.['service.kubernetes.io/service-proxy-name'] !== undefined) continue;
    if (raw.kind === 'Service') state.updateService(undefined, decoders.services(raw, intern));
    if (raw.kind === 'EndpointSlice') state.updateSlice(decoders.endpointSlices(raw, intern), false);
  }
  const planner = new Planner();
  await planner.apply(
    state.takeDelta().changed,
    state,
    { nodeName, zone, allowExternalIPs: true },
    timeSlice(),
  );
  return [...planner.plans.values()];
}

/** What a plan means for iptables, as short statements. `recordedStatements` derives the same from recorded rules. */
export function statementsOf(plan: ServicePlan): string[] {
  const { port } = plan;
  const name = servicePortName(port);
  const protocol = port.protocol.toLowerCase();
  const suffix = hash(name + protocol);
  const said: string[] = [];
  if (plan.cluster.length > 0) said.push(`SVC-${suffix} -> ${plan.cluster.map(({ id }) => id).join(' ')}`);
  if (plan.local.length > 0) said.push(`SVL-${suffix} -> ${plan.local.map(({ id }) => id).join(' ')}`);
  for (const { id } of plan.all) said.push(`SEP-${hash(name + protocol + id)} -> ${id}`);
  const internalChain = port.internalPolicyLocal ? 'SVL' : 'SVC';
  if (plan.internal.action === 'forward') {
    said.push(`${port.clusterIP} ${protocol} ${port.port} -> ${internalChain}-${suffix}`);
  } else said.push(refusal(plan.internal, name, port.clusterIP, protocol, port.port));
  const filtered = port.sourceRanges.length > 0 && port.loadBalancerVIPs.length > 0 && plan.hasAnyEndpoints;
  const frontends = [
    ...plan.externalIPs.map((ip) => ({ ip, port: port.port, chain: 'EXT' })),
    ...port.loadBalancerVIPs.map((ip) => ({ ip, port: port.port, chain: filtered ? 'FW' : 'EXT' })),
    ...(port.nodePort === 0 ? [] : [{ ip: 'node', port: port.nodePort, chain: 'EXT' }]),
  ];
  for (const { ip, port: number, chain } of frontends) {
    if (plan.hasAnyEndpoints) said.push(`${ip} ${protocol} ${number} -> ${chain}-${suffix}`);
    if (plan.external.action !== 'forward') said.push(refusal(plan.external, name, ip, protocol, number));
  }
  if (filtered) for (const range of port.sourceRanges) said.push(`FW-${suffix} accepts ${range}`);
  if (port.healthCheckNodePort !== 0) said.push(`${name} health check ${port.healthCheckNodePort}`);
  if (port.affinitySeconds > 0 && plan.all.length > 0) said.push(`${name} sticks ${port.affinitySeconds}`);
  return said;
}

function refusal(decision: Decision, name: string, ip: string, protocol: string, port: number): string {
  return `${decision.action} ${name} ${ip} ${protocol} ${port}`;
}

/** The same statements, derived from recorded output of iptables-save. */
export function recordedStatements(cluster: RecordedCluster, family: Family): string[] {
  const digit = family === 'IPv4' ? '4' : '6';
  const chains = new Map<string, string[]>();
  const said = new Set<string>();
  for (const line of cluster.expect[`nat${digit}`]) readNatRule(line, chains, said);
  for (const line of cluster.expect[`filter${digit}`]) readFilterRule(line, said);
  for (const [chain, ids] of chains) said.add(`${chain} -> ${ids.join(' ')}`);
  return [...said];
}

function readNatRule(line: string, chains: Map<string, string[]>, said: Set<string>): void {
  const chain = /^-A (?:KUBE-)?(\S+)/.exec(line)?.[1] ?? '';
  const target = / -j (?:KUBE-)?(\S+)$/.exec(line)?.[1] ?? / -j (\S+)/.exec(line)?.[1] ?? '';
  const comment = commentOf(line);
  const to = /--to-destination (\S+)/.exec(line)?.[1];
  if (/^SV[CL]-/.test(chain) && comment.includes(' -> ')) {
    const [name, id = ''] = comment.split(' -> ');
    const seconds = /--seconds (\d+)/.exec(line)?.[1];
    if (seconds) said.add(`${name} sticks ${seconds}`);
    else chains.set(chain, [...(chains.get(chain) ?? []), id]);
  } else if (to) said.add(`${chain} -> ${to}`);
  else if (/^FW-/.test(chain) && /^EXT-/.test(target))
    said.add(`${chain} accepts ${/ -s (\S+)/.exec(line)?.[1]}`);
  else if (/^(SVC|SVL|EXT|FW)-/.test(target) && !/^(EXT|FW)-/.test(chain) && !line.includes('127.0.0.0/8')) {
    said.add(`${addressOf(line)} ${protocolOf(line)} ${portOf(line)} -> ${target}`);
  }
}

function readFilterRule(line: string, said: Set<string>): void {
  const comment = commentOf(line);
  const refused = /^(.*) has no (?:local )?endpoints$/.exec(comment)?.[1];
  const action = / -j (REJECT|DROP)/.exec(line)?.[1]?.toLowerCase();
  if (refused && action)
    said.add(`${action} ${refused} ${addressOf(line)} ${protocolOf(line)} ${portOf(line)}`);
  const checked = /^(.*) health check node port$/.exec(comment)?.[1];
  if (checked) said.add(`${checked} health check ${portOf(line)}`);
}

const commentOf = (line: string) => {
  const match = /--comment (?:"([^"]*)"|(\S+))/.exec(line);
  return match?.[1] ?? match?.[2] ?? '';
};
const addressOf = (line: string) => / -d ([^/ ]+)/.exec(line)?.[1] ?? 'node';
const protocolOf = (line: string) => / -p (\S+)/.exec(line)?.[1] ?? '';
const portOf = (line: string) => / --dport (\d+)/.exec(line)?.[1] ?? '';

function hash(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const digest = createHash('sha256').update(text).digest();
  let bits = BigInt(`0x${digest.toString('hex')}`) >> (256n - 80n);
  let name = '';
  for (let i = 0; i < 16; i++) {
    name = `${alphabet[Number(bits & 31n)]}${name}`;
    bits >>= 5n;
  }
  return name;
}
