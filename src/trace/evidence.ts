import type { ExplanationReport } from '../inspect/api.ts';
import type { Expr } from '../kernel/nft/expr.ts';
import type { NftFamily } from '../kernel/nft/objects.ts';
import type { RulesetReader } from '../kernel/nft/ruleset-reader.ts';
import type { TraceStep } from '../kernel/nft/trace.ts';
import { commentOf, readExtension } from '../kernel/nft/walk/xtables.ts';
import { nameOf, protocolNumbers } from '../kernel/numbers.ts';
import type { RouteClient } from '../kernel/route/client.ts';
import type { SystemFiles } from '../kernel/system-files.ts';
import type { Protocol } from '../model/objects.ts';
import { endingOf, endsOf, type Headers, type Journey } from './journey.ts';
import { causesOfLoss } from './loss.ts';
import type { Answer, Evidence } from './story.ts';

/** A packet that kube-proxy can be asked about. */
export interface AskedAbout {
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** Absent for a packet of the node itself. */
  readonly interface?: string;
}

/** What is known of kube-proxy on this node. */
export interface ProxyKnowledge {
  /** Whether a chain belongs to it. */
  readonly isOurs: (family: NftFamily, table: string, chain: string) => boolean;
  /** Another program that writes the rules with this comment in a chain; undefined when the names do not tell. */
  readonly ownerOf: (chain: string, comment: string | null) => string | undefined;
  /** What it decided about a packet; undefined when it cannot be asked. */
  readonly explain: (packet: AskedAbout) => Promise<Pick<ExplanationReport, 'planned'> | undefined>;
}

/** What of the kernel is read after the packet. */
export interface KernelFacts {
  readonly rules: Pick<RulesetReader, 'listChainRules'>;
  readonly route: Pick<RouteClient, 'interfaceTowards' | 'listAddresses'>;
  readonly files: SystemFiles;
  /** By index. */
  readonly interfaces: ReadonlyMap<number, string>;
}

/** Finds out what the way of a packet alone does not tell. Rejects when the kernel cannot be read. */
export async function evidenceOf(
  journey: Journey,
  answer: Answer,
  proxy: ProxyKnowledge,
  kernel: KernelFacts,
): Promise<Evidence> {
  const { interfaces } = kernel;
  const { first, last } = endsOf(journey);
  const ending = endingOf(journey);
  const index = journey[0]?.inInterface;
  const arrivedOn = index === undefined ? null : (interfaces.get(index) ?? '');
  const decision = first && (await decisionAbout(first, arrivedOn, proxy));
  const step = ending.kind === 'stopped' ? ending.step : undefined;
  const rule = step && (await ruleOf(step, kernel));
  const lost = last && { headers: last, arrivedOn, targets: targetsOf(decision) };
  const causes = ending.kind === 'lost' && lost ? await causesOfLoss(ending, lost, kernel) : [];
  const owner = step && proxy.ownerOf(step.chain, rule?.comment ?? null);
  return {
    interfaces,
    ...(owner !== undefined && { owner }),
    isOurs: step !== undefined && proxy.isOurs(step.family, step.table, step.chain),
    answer,
    causes,
    ...(rule && { rule }),
    ...(decision && { decision }),
  };
}

async function decisionAbout(
  { source, destination, port, protocol }: Headers,
  arrivedOn: string | null,
  proxy: ProxyKnowledge,
): Promise<Evidence['decision']> {
  const name = nameOf(protocolNumbers, protocol);
  if (!name) return undefined;
  const asked = { source, destination, port, protocol: name, ...(arrivedOn && { interface: arrivedOn }) };
  return (await proxy.explain(asked))?.planned;
}

/** Addresses to which kube-proxy may have sent the packet. */
function targetsOf(decision: Evidence['decision']): string[] {
  if (decision?.fate.action !== 'forward') return [];
  return [...new Set(decision.fate.targets.map(({ endpoint }) => addressOf(endpoint)))];
}

/** `fd00::1` of `[fd00::1]:80`. */
function addressOf(endpoint: string): string {
  return endpoint.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
}

/** The rule of a step; undefined for a policy, and when the rule is no longer there. */
async function ruleOf(step: TraceStep, { rules }: KernelFacts): Promise<Evidence['rule']> {
  const { family, table, chain, ruleHandle, kind } = step;
  if (ruleHandle === undefined || kind !== 'rule') return undefined;
  const listed = await rules.listChainRules({ table: { family, name: table }, name: chain });
  const rule = listed.find(({ handle }) => handle === ruleHandle);
  return (
    rule && { comment: rule.comment ?? commentOf(rule.exprs) ?? null, isReject: rule.exprs.some(isRejection) }
  );
}

function isRejection(expr: Expr): boolean {
  if (expr.kind === 'reject') return true;
  return expr.kind === 'unknown' && expr.name === 'target' && readExtension(expr).name === 'REJECT';
}
