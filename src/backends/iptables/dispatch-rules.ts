import type { Decision, ServicePlan } from '../../plan/service-plan.ts';
import { balancingChain, type ServiceNames } from './names.ts';
import type { IptablesSettings } from './settings.ts';

/** The lines of one service port in chains that all service ports share, in the order in which they are written. */
export interface DispatchRules {
  readonly filter: readonly string[];
  readonly nat: readonly string[];
}

const none: readonly string[] = [];

/**
 * What sends traffic for one service port to its chains, or away. `countLocalhost` says that the nfacct counter of
 * node port traffic on loopback exists.
 */
export function dispatchRules(
  plan: ServicePlan,
  names: ServiceNames,
  settings: IptablesSettings,
  countLocalhost: boolean,
): DispatchRules {
  const filter: string[] = [];
  const nat: string[] = [];
  const isCounted = countLocalhost && settings.localhostNodePorts;
  dispatchClusterIP(plan, names, filter, nat);
  dispatchExternalIPs(plan, names, filter, nat);
  dispatchLoadBalancer(plan, names, filter, nat);
  dispatchNodePort(plan, names, isCounted, filter, nat);
  const { healthCheckNodePort } = plan.port;
  if (healthCheckNodePort !== 0) {
    filter.push(
      `-A KUBE-NODEPORTS -m comment --comment "${names.name} health check node port" -m tcp -p tcp --dport ${healthCheckNodePort} -j ACCEPT`,
    );
  }
  return { filter: filter.length > 0 ? filter : none, nat: nat.length > 0 ? nat : none };
}

function dispatchClusterIP(plan: ServicePlan, names: ServiceNames, filter: string[], nat: string[]): void {
  const { internal } = plan;
  const match = matchAddress(names, plan.port.clusterIP, plan.port.port);
  if (internal.action === 'forward') {
    const chain = balancingChain(names, internal.endpoints);
    nat.push(`-A KUBE-SERVICES -m comment --comment "${names.name} cluster IP" ${match} -j ${chain}`);
  } else {
    filter.push(`-A KUBE-SERVICES ${refusalComment(internal, names)} ${match} -j ${targetOf(internal)}`);
  }
}

function dispatchExternalIPs(plan: ServicePlan, names: ServiceNames, filter: string[], nat: string[]): void {
  for (const ip of plan.externalIPs) {
    if (plan.hasAnyEndpoints) {
      const match = matchAddress(names, ip, plan.port.port);
      nat.push(`-A KUBE-SERVICES -m comment --comment "${names.name} external IP" ${match} -j ${names.ext}`);
    }
    refuseExternal(plan, names, ip, filter);
  }
}

function dispatchLoadBalancer(plan: ServicePlan, names: ServiceNames, filter: string[], nat: string[]): void {
  const { loadBalancerVIPs, port } = plan.port;
  const isFiltered = usesFirewallChain(plan);
  for (const ip of loadBalancerVIPs) {
    if (!plan.hasAnyEndpoints) continue;
    const match = matchAddress(names, ip, port);
    const chain = isFiltered ? names.fw : names.ext;
    nat.push(`-A KUBE-SERVICES -m comment --comment "${names.name} loadbalancer IP" ${match} -j ${chain}`);
    if (!isFiltered) continue;
    const comment = `"${names.name} traffic not accepted by ${names.fw}"`;
    filter.push(`-A KUBE-PROXY-FIREWALL -m comment --comment ${comment} ${match} -j DROP`);
  }
  for (const ip of loadBalancerVIPs) refuseExternal(plan, names, ip, filter);
}

function dispatchNodePort(
  plan: ServicePlan,
  names: ServiceNames,
  isCounted: boolean,
  filter: string[],
  nat: string[],
): void {
  const { nodePort } = plan.port;
  if (nodePort === 0) return;
  const { name, protocol, ext } = names;
  const match = `-m ${protocol} -p ${protocol}`;
  if (plan.hasAnyEndpoints) {
    const head = `-A KUBE-NODEPORTS -m comment --comment ${name} ${match}`;
    if (isCounted) {
      nat.push(
        `${head} -d 127.0.0.0/8 --dport ${nodePort} -m nfacct --nfacct-name localhost_nps_accepted_pkts -j ${ext}`,
      );
    }
    nat.push(`${head} --dport ${nodePort} -j ${ext}`);
  }
  if (plan.external.action === 'forward') return;
  const comment = refusalComment(plan.external, names);
  filter.push(
    `-A KUBE-EXTERNAL-SERVICES ${comment} -m addrtype --dst-type LOCAL ${match} --dport ${nodePort} -j ${targetOf(plan.external)}`,
  );
}

function refuseExternal(plan: ServicePlan, names: ServiceNames, ip: string, filter: string[]): void {
  if (plan.external.action === 'forward') return;
  const match = matchAddress(names, ip, plan.port.port);
  const comment = refusalComment(plan.external, names);
  filter.push(`-A KUBE-EXTERNAL-SERVICES ${comment} ${match} -j ${targetOf(plan.external)}`);
}

/** The load balancer addresses are open to the given source ranges only. */
export function usesFirewallChain({ hasAnyEndpoints, port }: ServicePlan): boolean {
  return hasAnyEndpoints && port.loadBalancerVIPs.length > 0 && port.sourceRanges.length > 0;
}

/** The match on one address and port of a service. */
export function matchAddress({ protocol }: ServiceNames, ip: string, port: number): string {
  return `-m ${protocol} -p ${protocol} -d ${ip} --dport ${port}`;
}

function refusalComment({ action }: Decision, { name }: ServiceNames): string {
  return `-m comment --comment "${name} has no ${action === 'drop' ? 'local ' : ''}endpoints"`;
}

function targetOf({ action }: Decision): string {
  return action === 'drop' ? 'DROP' : 'REJECT';
}
