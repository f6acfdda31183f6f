import { type Frontend, frontendsOf } from '../../plan/frontend.ts';
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
  const rules = { filter: [] as string[], nat: [] as string[] };
  const isCounted = countLocalhost && settings.localhostNodePorts;
  for (const frontend of frontendsOf(plan)) {
    if (frontend.kind === 'cluster IP') dispatchClusterIP(frontend, names, rules);
    else if (frontend.kind === 'node port') dispatchNodePort(frontend, names, isCounted, rules);
    else dispatchExternal(frontend, names, rules);
  }
  const { healthCheckNodePort } = plan.port;
  if (healthCheckNodePort !== 0) {
    rules.filter.push(
      `-A KUBE-NODEPORTS -m comment --comment "${names.name} health check node port" -m tcp -p tcp --dport ${healthCheckNodePort} -j ACCEPT`,
    );
  }
  return {
    filter: rules.filter.length > 0 ? rules.filter : none,
    nat: rules.nat.length > 0 ? rules.nat : none,
  };
}

interface GrowingRules {
  readonly filter: string[];
  readonly nat: string[];
}

function dispatchClusterIP(frontend: Frontend, names: ServiceNames, { filter, nat }: GrowingRules): void {
  const { outside } = frontend;
  const match = matchAddress(names, frontend.address, frontend.port);
  if (outside.action === 'forward') {
    const chain = balancingChain(names, outside.endpoints);
    nat.push(`-A KUBE-SERVICES -m comment --comment "${names.name} cluster IP" ${match} -j ${chain}`);
  } else {
    filter.push(`-A KUBE-SERVICES ${refusalComment(outside, names)} ${match} -j ${targetOf(outside)}`);
  }
}

function dispatchExternal(frontend: Frontend, names: ServiceNames, { filter, nat }: GrowingRules): void {
  const { plan, kind, outside } = frontend;
  const match = matchAddress(names, frontend.address, frontend.port);
  const isFiltered = kind === 'load balancer IP' && usesFirewallChain(plan);
  if (plan.hasAnyEndpoints) {
    const what = kind === 'external IP' ? 'external IP' : 'loadbalancer IP';
    const chain = isFiltered ? names.fw : names.ext;
    nat.push(`-A KUBE-SERVICES -m comment --comment "${names.name} ${what}" ${match} -j ${chain}`);
  }
  if (isFiltered) {
    const comment = `"${names.name} traffic not accepted by ${names.fw}"`;
    filter.push(`-A KUBE-PROXY-FIREWALL -m comment --comment ${comment} ${match} -j DROP`);
  }
  if (outside.action === 'forward') return;
  filter.push(`-A KUBE-EXTERNAL-SERVICES ${refusalComment(outside, names)} ${match} -j ${targetOf(outside)}`);
}

function dispatchNodePort(
  { plan, port, outside }: Frontend,
  names: ServiceNames,
  isCounted: boolean,
  { filter, nat }: GrowingRules,
): void {
  const { name, protocol, ext } = names;
  const match = `-m ${protocol} -p ${protocol}`;
  if (plan.hasAnyEndpoints) {
    const head = `-A KUBE-NODEPORTS -m comment --comment ${name} ${match}`;
    if (isCounted) {
      nat.push(
        `${head} -d 127.0.0.0/8 --dport ${port} -m nfacct --nfacct-name localhost_nps_accepted_pkts -j ${ext}`,
      );
    }
    nat.push(`${head} --dport ${port} -j ${ext}`);
  }
  if (outside.action === 'forward') return;
  const comment = refusalComment(outside, names);
  filter.push(
    `-A KUBE-EXTERNAL-SERVICES ${comment} -m addrtype --dst-type LOCAL ${match} --dport ${port} -j ${targetOf(outside)}`,
  );
}

/** The load balancer addresses are open to the given source ranges only. */
export function usesFirewallChain(plan: ServicePlan): boolean {
  if (!plan.hasAnyEndpoints || plan.port.sourceRanges.length === 0) return false;
  return frontendsOf(plan).some(({ kind }) => kind === 'load balancer IP');
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
