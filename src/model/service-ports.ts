import { canonicalIP, canonicalIPOf, type Family, formatCIDR, parseCIDR } from './ip.ts';
import type { ObjectProblem } from './object-problem.ts';
import type { Protocol, ServiceObject, ServicePortObject } from './objects.ts';
import { annotationPath, parseResetDeparted, type ResetDeparted } from './own-annotations.ts';
import { type ServicePort, servicePortKey } from './service-port.ts';

/** What the API server fills in when ClientIP affinity comes without a timeout. */
export const defaultAffinitySeconds = 10_800;
/** The longest timeout that the API accepts: a day. */
const maxAffinitySeconds = 86_400;

const nothing: readonly never[] = [];

/** What the program offers to Services, and asks on behalf of those that say nothing. */
export interface ServiceDefaults {
  /** Whether connections to endpoints that are gone get a reset; `impossible` in modes that cannot do it. */
  readonly resetDeparted: 'off' | 'tcp' | 'impossible';
  /** Whether the mode can choose endpoints by a hash. */
  readonly hashes?: boolean | undefined;
}

const upstreamDefaults: ServiceDefaults = { resetDeparted: 'off' };

const impossible = 'is not possible in this proxy mode; the Service is served without it';

const contradictsAffinity =
  'contradicts sessionAffinity ClientIP, which decides; the hash chooses only for clients without a record';

type Report = (field: string, value: unknown, fault: string) => void;

/**
 * The ports of a Service as one family sees them: none when the Service is headless, an ExternalName, or has no
 * cluster IP of this family. Whatever cannot be used is left out and reported; addresses and ranges of the other
 * family are left out without a word, because a dual-stack Service carries both.
 */
export function servicePortsOf(
  service: ServiceObject,
  family: Family,
  defaults = upstreamDefaults,
): { readonly ports: readonly ServicePort[]; readonly problems: readonly ObjectProblem[] } {
  const problems: ObjectProblem[] = [];
  const { namespace, name } = service;
  const report: Report = (field, value, fault) =>
    problems.push({ kind: 'Service', namespace, name, field, value: String(value), fault });
  const clusterIP = isIgnored(service) ? undefined : clusterIPOf(service, family, report);
  if (clusterIP === undefined || !isUsableName(service, report)) return { ports: nothing, problems };
  const extras = extrasOf(service, defaults, report);
  return { ports: buildPorts(service, { family, clusterIP, ...extras }, report), problems };
}

export function parseProtocol(text: string): Protocol | undefined {
  if (text === 'TCP' || text === 'UDP' || text === 'SCTP') return text;
  // What the API server makes of a missing protocol.
  return text === '' ? 'TCP' : undefined;
}

export function isPortNumber(value: number | undefined): value is number {
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= 65_535;
}

function isIgnored(service: ServiceObject): boolean {
  return service.clusterIP === '' || service.clusterIP === 'None' || service.type === 'ExternalName';
}

/**
 * A NUL ends the comments and arguments by which modes name a service port in the kernel; other control characters
 * garble logs and terminals. The API allows none, a manifest or a faulty API server might hold them.
 */
const controlCharacter = /\p{Cc}/u;
const controlFault = 'has a control character';

/** Keys of service ports are cut at `/` and `:`, which the API does not allow in names either. */
function isUsableName({ namespace, name }: ServiceObject, report: Report): boolean {
  const ok = (text: string) => text !== '' && !/[/:]/.test(text);
  if (!ok(namespace)) report('metadata.namespace', namespace, 'is not a namespace');
  else if (!ok(name)) report('metadata.name', name, 'is not a Service name');
  else if (controlCharacter.test(namespace)) report('metadata.namespace', namespace, controlFault);
  else if (controlCharacter.test(name)) report('metadata.name', name, controlFault);
  else return true;
  return false;
}

function clusterIPOf(service: ServiceObject, family: Family, report: Report): string | undefined {
  if (service.ipFamilies.length === 0) {
    // An API server that predates dual stack says one address and no family.
    if (canonicalIP(service.clusterIP) === undefined) {
      report('spec.clusterIP', service.clusterIP, 'is not an IP address');
    }
    return canonicalIPOf(family, service.clusterIP);
  }
  const index = service.ipFamilies.indexOf(family);
  const text = service.clusterIPs[index];
  if (text === undefined) return undefined;
  const clusterIP = canonicalIPOf(family, text);
  if (clusterIP === undefined) report(`spec.clusterIPs[${index}]`, text, `is not an ${family} address`);
  return clusterIP;
}

function buildPorts(
  service: ServiceObject,
  decided: Pick<ServicePort, 'family' | 'clusterIP' | keyof Extras>,
  report: Report,
): readonly ServicePort[] {
  const { family } = decided;
  const externalPolicyLocal = isExternalPolicyLocal(service);
  const shared = {
    namespace: service.namespace,
    name: service.name,
    uid: service.uid,
    createdAt: service.createdAt,
    ...decided,
    affinitySeconds: affinitySecondsOf(service, report),
    externalIPs: externalIPsOf(service, family, report),
    loadBalancerVIPs: loadBalancerVIPsOf(service, family, report),
    sourceRanges: sourceRangesOf(service, family, report),
    externalPolicyLocal,
    internalPolicyLocal: service.internalTrafficPolicy === 'Local',
    healthCheckNodePort: healthCheckNodePortOf(service, externalPolicyLocal, report),
  };
  const ports: ServicePort[] = [];
  for (const [i, object] of service.ports.entries()) {
    const port = buildPort(shared, object, `spec.ports[${i}]`, report);
    if (!port) continue;
    const twin = ports.findIndex((other) => other.key === port.key);
    if (twin < 0) ports.push(port);
    else {
      report(`spec.ports[${i}].name`, port.portName, `is the second ${port.protocol} port of that name`);
      ports[twin] = port;
    }
  }
  return ports;
}

type SharedFields = Omit<ServicePort, 'key' | 'portName' | 'protocol' | 'port' | 'nodePort'>;

function buildPort(
  shared: SharedFields,
  object: ServicePortObject,
  field: string,
  report: Report,
): ServicePort | undefined {
  const protocol = parseProtocol(object.protocol);
  if (!protocol) {
    report(`${field}.protocol`, object.protocol, 'is not TCP, UDP or SCTP');
    return undefined;
  }
  if (!isPortNumber(object.port)) {
    report(`${field}.port`, object.port, 'is not a port number from 1 to 65535');
    return undefined;
  }
  if (controlCharacter.test(object.name)) {
    report(`${field}.name`, object.name, controlFault);
    return undefined;
  }
  const nodePort = portOrNone(object.nodePort, `${field}.nodePort`, report);
  // Written out field by field: all records then share one shape, and the whole of it is in view.
  return {
    key: servicePortKey(shared.namespace, shared.name, object.name, protocol),
    namespace: shared.namespace,
    name: shared.name,
    uid: shared.uid,
    createdAt: shared.createdAt,
    portName: object.name,
    protocol,
    family: shared.family,
    clusterIP: shared.clusterIP,
    port: object.port,
    nodePort,
    affinitySeconds: shared.affinitySeconds,
    balance: shared.balance,
    externalIPs: shared.externalIPs,
    loadBalancerVIPs: shared.loadBalancerVIPs,
    sourceRanges: shared.sourceRanges,
    externalPolicyLocal: shared.externalPolicyLocal,
    internalPolicyLocal: shared.internalPolicyLocal,
    healthCheckNodePort: shared.healthCheckNodePort,
    resetsDeparted: protocol === 'TCP' && shared.resetsDeparted,
    unsupportedBalance: shared.unsupportedBalance,
    unsupportedReset: protocol === 'TCP' && shared.unsupportedReset,
  };
}

/** The policy applies only to a service with an external address; external IPs of either family count. */
function isExternalPolicyLocal(service: ServiceObject): boolean {
  if (service.externalTrafficPolicy !== 'Local') return false;
  if (service.type === 'LoadBalancer' || service.type === 'NodePort') return true;
  return service.type === 'ClusterIP' && service.externalIPs.length > 0;
}

function affinitySecondsOf(service: ServiceObject, report: Report): number {
  if (service.sessionAffinity !== 'ClientIP') return 0;
  const seconds = service.affinityTimeoutSeconds;
  if (seconds === undefined) return defaultAffinitySeconds;
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= maxAffinitySeconds) return seconds;
  report('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, 'is not from 1 to 86400');
  return defaultAffinitySeconds;
}

/** What follows from annotations of this program, and from the defaults of Services without them. */
type Extras = Pick<ServicePort, 'balance' | 'resetsDeparted' | 'unsupportedBalance' | 'unsupportedReset'>;

function extrasOf(service: ServiceObject, defaults: ServiceDefaults, report: Report): Extras {
  const reset = askedReset(service, report);
  const hash = askedHash(service, report);
  const unsupportedReset = reset === 'tcp' && defaults.resetDeparted === 'impossible';
  const unsupportedBalance = defaults.hashes ? undefined : hash;
  if (unsupportedReset) report(annotationPath('reset-departed'), reset, impossible);
  if (unsupportedBalance) report(annotationPath('balance'), hash, impossible);
  // Affinity keeps a client at one endpoint, as hash-client does; a hash of its port spreads its connections.
  else if (hash === 'hash' && service.sessionAffinity === 'ClientIP') {
    report(annotationPath('balance'), hash, contradictsAffinity);
  }
  return {
    balance: unsupportedBalance ? 'default' : (hash ?? 'default'),
    resetsDeparted: !unsupportedReset && (reset ?? defaults.resetDeparted) === 'tcp',
    unsupportedBalance,
    unsupportedReset,
  };
}

/** Undefined when the Service asks for no hash. */
function askedHash({ annotations }: ServiceObject, report: Report): ServicePort['unsupportedBalance'] {
  const value = annotations?.balance;
  if (value === undefined || value === 'hash' || value === 'hash-client') return value;
  report(annotationPath('balance'), value, 'is neither hash nor hash-client');
  return undefined;
}

/** Undefined when the Service leaves it to the flag. */
function askedReset({ annotations }: ServiceObject, report: Report): ResetDeparted | undefined {
  const value = annotations?.['reset-departed'];
  const asked = value === undefined ? undefined : parseResetDeparted(value);
  if (value !== undefined && asked === undefined) {
    report(annotationPath('reset-departed'), value, 'is neither off nor tcp');
  }
  return asked;
}

function externalIPsOf(service: ServiceObject, family: Family, report: Report): readonly string[] {
  if (service.externalIPs.length === 0) return nothing;
  const kept: string[] = [];
  for (const [i, text] of service.externalIPs.entries()) {
    const ip = canonicalIPOf(family, text);
    if (ip !== undefined) kept.push(ip);
    else reportUnlessAddress(text, `spec.externalIPs[${i}]`, report);
  }
  return kept;
}

function loadBalancerVIPsOf(service: ServiceObject, family: Family, report: Report): readonly string[] {
  if (service.loadBalancerIngress.length === 0) return nothing;
  const kept: string[] = [];
  for (const [i, { ip: text, ipMode }] of service.loadBalancerIngress.entries()) {
    if (text === '' || (ipMode !== undefined && ipMode !== 'VIP')) continue;
    const ip = canonicalIPOf(family, text);
    if (ip !== undefined) kept.push(ip);
    else reportUnlessAddress(text, `status.loadBalancer.ingress[${i}].ip`, report);
  }
  return kept;
}

function reportUnlessAddress(text: string, field: string, report: Report): void {
  if (text.trim() !== '' && canonicalIP(text) === undefined) report(field, text, 'is not an IP address');
}

function sourceRangesOf(service: ServiceObject, family: Family, report: Report): readonly string[] {
  if (service.loadBalancerSourceRanges.length === 0) return nothing;
  const kept: string[] = [];
  let open = false;
  for (const [i, text] of service.loadBalancerSourceRanges.entries()) {
    const trimmed = text.trim();
    const cidr = parseCIDR(trimmed);
    if (cidr?.family === family) {
      kept.push(formatCIDR(cidr));
      open ||= cidr.prefix === 0;
    } else if (!cidr && trimmed !== '') report(`spec.loadBalancerSourceRanges[${i}]`, text, 'is not a CIDR');
  }
  return open ? nothing : kept;
}

function healthCheckNodePortOf(service: ServiceObject, externalPolicyLocal: boolean, report: Report): number {
  if (service.type !== 'LoadBalancer' || !externalPolicyLocal) return 0;
  const field = 'spec.healthCheckNodePort';
  if (service.healthCheckNodePort === 0) {
    report(field, 0, 'leaves a load balancer under policy Local without a health check');
  }
  return portOrNone(service.healthCheckNodePort, field, report);
}

function portOrNone(port: number, field: string, report: Report): number {
  if (port === 0 || isPortNumber(port)) return port;
  report(field, port, 'is not a port number from 1 to 65535');
  return 0;
}
