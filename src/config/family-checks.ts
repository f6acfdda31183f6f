import { type Family, isUnspecified, otherFamily, parseCIDR, parseIP } from '../model/ip.ts';
import { joinMessages } from './errors.ts';

/** The settings whose IP families must fit each other and the node. */
export interface FamilySettings {
  readonly primary: Family;
  readonly dualStack: boolean;
  readonly detectLocalMode: string;
  readonly clusterCIDRs: readonly string[];
  /** `spec.podCIDRs` of the node, as found at start-up. */
  readonly podCIDRs: readonly string[];
  /** After keyword expansion. */
  readonly nodePortAddresses: readonly string[];
  readonly ipvsExcludeCIDRs: readonly string[];
  readonly winkernelSourceVip: string;
  readonly healthzBindAddress: string;
  readonly metricsBindAddress: string;
}

export interface FamilyCheck {
  readonly problems: readonly string[];
  /** The message when the program cannot work with these settings. */
  readonly fatal?: string;
}

/** A problem of `nodePortAddresses` to log; undefined when there is none. */
export function nodePortAddressesProblem(settings: FamilySettings): string | undefined {
  const { primary, nodePortAddresses: entries } = settings;
  if (entries.length === 0) {
    return 'nodePortAddresses is not set: node ports accept connections on every local address; consider "primary"';
  }
  const families = entries.map((entry) => parseCIDR(entry)?.family);
  if (looksDualStack(settings) && families.every((family) => family === primary)) {
    return (
      `nodePortAddresses ${show(entries)} is all ${primary} although other settings are dual-stack: ` +
      `${otherFamily(primary)} node ports accept connections on every local address`
    );
  }
  if (!families.includes(primary)) {
    return (
      `nodePortAddresses ${show(entries)} has no entry of the primary family ${primary}: ` +
      `${primary} node ports accept connections on every local address`
    );
  }
  return undefined;
}

/** Finds settings that have addresses of the wrong family only. */
export function checkFamilies(settings: FamilySettings): FamilyCheck {
  const { primary, dualStack, detectLocalMode: mode } = settings;
  const bad = otherFamily(primary);
  const problems: string[] = [];
  let fatal = false;
  const cidrs = (name: string, entries: readonly string[], isFatal: boolean): void => {
    if (!allOfFamily(entries, bad)) return;
    problems.push(`${name} ${show(entries)} is all ${bad} but the primary family is ${primary}`);
    fatal ||= isFatal;
  };
  const address = (name: string, text: string, host: string): void => {
    const ip = parseIP(host);
    if (ip?.family !== bad || isUnspecified(ip)) return;
    problems.push(`${name} ${JSON.stringify(text)} is ${bad} but the primary family is ${primary}`);
  };
  cidrs('clusterCIDR', settings.clusterCIDRs, mode === 'ClusterCIDR' && !dualStack);
  cidrs('spec.podCIDRs of the node', settings.podCIDRs, mode === 'NodeCIDR');
  address('winkernel.sourceVip', settings.winkernelSourceVip, settings.winkernelSourceVip);
  if (!dualStack) {
    cidrs('ipvs.excludeCIDRs', settings.ipvsExcludeCIDRs, false);
    address('healthzBindAddress', settings.healthzBindAddress, hostOf(settings.healthzBindAddress));
    address('metricsBindAddress', settings.metricsBindAddress, hostOf(settings.metricsBindAddress));
  }
  return fatal
    ? { problems, fatal: `kube-proxy configuration is incorrect: ${joinMessages(problems)}` }
    : { problems };
}

/** Whether a list of valid CIDRs has both families. */
function looksDualStack(settings: FamilySettings): boolean {
  const lists = [
    settings.clusterCIDRs,
    settings.nodePortAddresses,
    settings.ipvsExcludeCIDRs,
    settings.podCIDRs,
  ];
  return lists.some((list) => {
    const families = list.map((entry) => parseCIDR(entry)?.family);
    return !families.includes(undefined) && families.includes('IPv4') && families.includes('IPv6');
  });
}

function allOfFamily(entries: readonly string[], family: Family): boolean {
  return entries.length > 0 && entries.every((entry) => parseCIDR(entry)?.family === family);
}

/** The host of `host:port`, without the brackets of IPv6; a bare address is its own host. */
function hostOf(address: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(address)?.[1];
  if (bracketed !== undefined) return bracketed;
  return parseIP(address) ? address : address.slice(0, Math.max(0, address.lastIndexOf(':')));
}

function show(entries: readonly string[]): string {
  return JSON.stringify(entries);
}
