import type { LocalDetector } from '../../model/local-detector.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import { admittedSources } from '../../plan/source-ranges.ts';
import { podSource } from '../rule-text.ts';
import { matchAddress, usesFirewallChain } from './dispatch-rules.ts';
import { balancingRules, destinationRules, type EndpointContext } from './endpoint-rules.ts';
import { balancingChain, endpointChain, type ServiceNames, serviceNames } from './names.ts';
import type { IptablesSettings } from './settings.ts';

/** The chains of one service port, all in nat, in the order in which they are declared. */
export interface ServiceChains {
  readonly names: ServiceNames;
  /** Last those of the endpoints, in the order of `all` in the plan. */
  readonly declared: readonly string[];
}

export function serviceChains(plan: ServicePlan, names = serviceNames(plan.port)): ServiceChains {
  const declared: string[] = [];
  if (usesExternalChain(plan)) declared.push(names.ext);
  if (usesFirewallChain(plan)) declared.push(names.fw);
  if (plan.cluster.length > 0) declared.push(names.svc);
  if (plan.local.length > 0) declared.push(names.svl);
  for (const { id } of plan.all) declared.push(endpointChain(names, id));
  return { names, declared };
}

/**
 * The rules in the chains of one service port. Without `comments`, those of the rules that there is one or more of
 * for every endpoint are left out.
 */
export function serviceRules(
  plan: ServicePlan,
  chains: ServiceChains,
  settings: IptablesSettings,
  comments: boolean,
): string[] {
  const { names, declared } = chains;
  const first = declared.length - plan.all.length;
  const context: EndpointContext = {
    names,
    chains: new Map(plan.all.map((endpoint, i) => [endpoint, declared[first + i] ?? ''])),
    affinitySeconds: plan.port.affinitySeconds,
    comments,
  };
  return [
    ...policyRules(plan, names, settings),
    ...balancingRules(names.svc, plan.cluster, context),
    ...balancingRules(names.svl, plan.local, context),
    ...destinationRules(context),
  ];
}

/** How many rules `serviceRules` gives, without making one for every endpoint. */
export function countServiceRules(
  plan: ServicePlan,
  names: ServiceNames,
  settings: IptablesSettings,
): number {
  const perChoice = plan.port.affinitySeconds > 0 ? 2 : 1;
  const choices = plan.cluster.length + plan.local.length;
  return policyRules(plan, names, settings).length + perChoice * choices + 2 * plan.all.length;
}

function policyRules(plan: ServicePlan, names: ServiceNames, settings: IptablesSettings): string[] {
  return [
    ...masqueradeRules(plan, names, settings),
    ...externalRules(plan, names, settings.localDetector),
    ...firewallRules(plan, names, settings),
  ];
}

function masqueradeRules(
  { port, internal }: ServicePlan,
  names: ServiceNames,
  { masqueradeAll, localDetector }: IptablesSettings,
): string[] {
  if (internal.action !== 'forward') return [];
  const pods = podSource(localDetector);
  if (!masqueradeAll && pods === undefined) return [];
  const source = masqueradeAll ? '' : ` ! ${pods}`;
  const chain = balancingChain(names, internal.endpoints);
  const match = matchAddress(names, port.clusterIP, port.port);
  return [`-A ${chain} -m comment --comment "${names.name} cluster IP" ${match}${source} -j KUBE-MARK-MASQ`];
}

function externalRules(plan: ServicePlan, names: ServiceNames, detector: LocalDetector): string[] {
  if (!usesExternalChain(plan)) return [];
  const { external, near } = plan;
  const { name, ext } = names;
  const rule = (what: string, rest: string) =>
    `-A ${ext} -m comment --comment "${what} for ${name} external destinations"${rest}`;
  const rules: string[] = [];
  if (near?.action === 'forward') {
    const chain = balancingChain(names, near.endpoints);
    const pods = podSource(detector);
    if (pods !== undefined) rules.push(rule('pod traffic', ` ${pods} -j ${chain}`));
    rules.push(rule('masquerade LOCAL traffic', ' -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ'));
    rules.push(rule('route LOCAL traffic', ` -m addrtype --src-type LOCAL -j ${chain}`));
  } else {
    // Under policy Cluster the endpoint may be elsewhere, and replies have to come back through this node.
    rules.push(rule('masquerade traffic', ' -j KUBE-MARK-MASQ'));
  }
  if (external.action === 'forward') rules.push(`-A ${ext} -j ${balancingChain(names, external.endpoints)}`);
  return rules;
}

function firewallRules(plan: ServicePlan, names: ServiceNames, { nodeIP }: IptablesSettings): string[] {
  if (!usesFirewallChain(plan)) return [];
  const { name, fw, ext } = names;
  const accept = (source: string) =>
    `-A ${fw} -m comment --comment "${name} loadbalancer IP" -s ${source} -j ${ext}`;
  return [
    ...admittedSources(plan.port, nodeIP).map(accept),
    `-A ${fw} -m comment --comment "other traffic to ${name} will be dropped by KUBE-PROXY-FIREWALL"`,
  ];
}

function usesExternalChain({ hasAnyEndpoints, externallyAccessible }: ServicePlan): boolean {
  return hasAnyEndpoints && externallyAccessible;
}
