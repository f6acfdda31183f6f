import { encodeConfig } from './encode.ts';
import type { StructType } from './schema.ts';
import type { ConfigDraft } from './types.ts';
import { v1alpha1 } from './v1alpha1.ts';

/**
 * The parts of the program that take up a changed field while it runs, in the order in which they do. `client`: how the
 * program talks to the API server. `conntrack`: the kernel's parameters of connection tracking. `servers`: the health and the metrics server. `rules`: what the mode
 * writes, and where health check node ports are. `process`: the OOM score of the process. `pages`: what the metrics
 * server shows. `logging`: the log.
 */
export const liveParts = ['client', 'conntrack', 'servers', 'rules', 'process', 'pages', 'logging'] as const;

export type LivePart = (typeof liveParts)[number];

/** The parts that take up a change of a field, none when it has no effect here; or why the change needs a restart. */
export type FieldChange = { readonly live: readonly LivePart[] } | { readonly restart: string };

type PathsOf<T extends StructType> = {
  [K in keyof T['fields'] & string]: T['fields'][K]['type'] extends infer Type extends StructType
    ? `${K}.${PathsOf<Type>}`
    : K;
}[keyof T['fields'] & string];

/** The path of a field in the file: `nftables.masqueradeAll`. */
export type FieldPath = PathsOf<typeof v1alpha1>;

const rules: FieldChange = { live: ['rules'] };
const conntrack: FieldChange = { live: ['conntrack'] };
const logging: FieldChange = { live: ['logging'] };
const unused: FieldChange = { live: [] };
const client: FieldChange = { live: ['client'] };
const server: FieldChange = { live: ['servers'] };
const identity: FieldChange = { restart: 'it decides which node this is, and its addresses' };

/** What a change of each field of the file does. The reference page shows it. */
export const fieldChanges: Readonly<Record<FieldPath, FieldChange>> = {
  kind: unused,
  apiVersion: unused,
  featureGates: { restart: 'gates decide what the program is made of: its client, metrics and rules' },
  'clientConnection.kubeconfig': { restart: 'the objects of another cluster have nothing to do with these' },
  'clientConnection.acceptContentTypes': client,
  'clientConnection.contentType': client,
  'clientConnection.qps': client,
  'clientConnection.burst': client,
  'logging.format': logging,
  'logging.flushFrequency': logging,
  'logging.verbosity': logging,
  'logging.vmodule': logging,
  'logging.options.text.splitStream': logging,
  'logging.options.text.infoBufferSize': logging,
  'logging.options.json.splitStream': logging,
  'logging.options.json.infoBufferSize': logging,
  hostnameOverride: identity,
  bindAddress: identity,
  healthzBindAddress: server,
  metricsBindAddress: server,
  bindAddressHardFail: server,
  enableProfiling: { live: ['pages'] },
  showHiddenMetricsForVersion: unused,
  mode: { restart: 'the rules of both modes would apply to a packet during the change' },
  'iptables.masqueradeBit': rules,
  'iptables.masqueradeAll': rules,
  'iptables.localhostNodePorts': rules,
  'iptables.syncPeriod': rules,
  'iptables.minSyncPeriod': rules,
  'ipvs.syncPeriod': rules,
  'ipvs.minSyncPeriod': rules,
  'ipvs.scheduler': rules,
  'ipvs.excludeCIDRs': rules,
  'ipvs.strictARP': rules,
  'ipvs.tcpTimeout': rules,
  'ipvs.tcpFinTimeout': rules,
  'ipvs.udpTimeout': rules,
  'nftables.masqueradeBit': rules,
  'nftables.masqueradeAll': rules,
  'nftables.syncPeriod': rules,
  'nftables.minSyncPeriod': rules,
  'winkernel.networkName': unused,
  'winkernel.sourceVip': unused,
  'winkernel.enableDSR': unused,
  'winkernel.rootHnsEndpointName': unused,
  'winkernel.forwardHealthCheckVip': unused,
  detectLocalMode: rules,
  'detectLocal.bridgeInterface': rules,
  'detectLocal.interfaceNamePrefix': rules,
  clusterCIDR: rules,
  nodePortAddresses: rules,
  oomScoreAdj: { live: ['process'] },
  'conntrack.maxPerCore': conntrack,
  'conntrack.min': conntrack,
  'conntrack.tcpEstablishedTimeout': conntrack,
  'conntrack.tcpCloseWaitTimeout': conntrack,
  // Rules of iptables mode depend on it.
  'conntrack.tcpBeLiberal': { live: ['conntrack', 'rules'] },
  'conntrack.udpTimeout': conntrack,
  'conntrack.udpStreamTimeout': conntrack,
  configSyncPeriod: unused,
  portRange: { restart: 'only userspace mode uses it, which holds the connections of clients' },
  windowsRunAsService: unused,
};

/** Why a mode that forwards connections itself cannot take up a change of its rules. */
const HOLDS_CONNECTIONS = 'connections go through this process, and new rules would end them';

/** What a new configuration asks for. */
export interface ConfigChange {
  /** Every field that differs. */
  readonly fields: readonly string[];
  /** Those that need a restart, and why; the change can be made live when there are none. */
  readonly restart: readonly { readonly field: string; readonly reason: string }[];
  readonly parts: ReadonlySet<LivePart>;
}

/**
 * Compares two effective configurations. Fields that the mode does not read do not differ. `holdsConnections`: the
 * connections of clients go through this process, so that its rules cannot be taken up anew without ending them.
 */
export function configChange(from: ConfigDraft, to: ConfigDraft, holdsConnections: boolean): ConfigChange {
  const fields = changedFields(from, to);
  const restart: { field: string; reason: string }[] = [];
  const parts = new Set<LivePart>();
  for (const field of fields) {
    const change = fieldChanges[field];
    if ('restart' in change) restart.push({ field, reason: change.restart });
    else if (holdsConnections && change.live.includes('rules'))
      restart.push({ field, reason: HOLDS_CONNECTIONS });
    else for (const part of change.live) parts.add(part);
  }
  return { fields, restart, parts };
}

/** The paths of all fields of the file, in its order. */
export const fieldPaths: readonly FieldPath[] = pathsOf(v1alpha1, '').filter(isFieldPath);

function changedFields(from: ConfigDraft, to: ConfigDraft): FieldPath[] {
  const [before, after] = [encodeConfig(from), encodeConfig(to)];
  return fieldPaths.filter((path) => valueText(before, path) !== valueText(after, path));
}

function pathsOf({ fields }: StructType, prefix: string): string[] {
  return Object.entries(fields).flatMap(([name, { type }]) =>
    type.kind === 'struct' ? pathsOf(type, `${prefix}${name}.`) : [`${prefix}${name}`],
  );
}

function isFieldPath(path: string): path is FieldPath {
  return path in fieldChanges;
}

function valueText(config: unknown, path: string): string | undefined {
  const value = path
    .split('.')
    .reduce<unknown>(
      (at, name) => (typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined),
      config,
    );
  return JSON.stringify(value);
}
