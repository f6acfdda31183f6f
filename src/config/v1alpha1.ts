import {
  bool,
  duration,
  field,
  float32,
  int32,
  listOf,
  mapOf,
  nanoseconds,
  nullable,
  optional,
  quantity,
  scalar,
  string,
  struct,
  type Value,
} from './schema.ts';

export const API_VERSION = 'kubeproxy.config.k8s.io/v1alpha1';
export const KIND = 'KubeProxyConfiguration';

const level = scalar('uint32', 'v1.VerbosityLevel');
const strings = listOf(string, '[]string');

const clientConnection = struct('v1alpha1.ClientConnectionConfiguration', {
  kubeconfig: field(string, 'Path of the kubeconfig file; empty means the in-cluster credentials.'),
  acceptContentTypes: field(string, 'Accept header of API requests; empty derives it from contentType.'),
  contentType: field(string, 'Content type of API requests.'),
  qps: field(float32, 'API requests per second; negative means unlimited.'),
  burst: field(int32, 'API requests that may be made at once above qps.'),
});

const routing = {
  splitStream: optional(bool, 'Errors to stderr and the rest to stdout (gate LoggingAlphaOptions).'),
  infoBufferSize: field(quantity, 'Bytes of info output buffered when streams are split.'),
};

const logging = struct('v1.LoggingConfiguration', {
  format: field(string, '`text` or `json`.'),
  flushFrequency: field(nanoseconds, 'Longest time a record stays buffered.'),
  verbosity: field(level, 'Records up to this level are written.'),
  vmodule: optional(
    listOf(
      struct('v1.VModuleItem', {
        filePattern: field(string, 'Source files, by base name; `*` and `?` match.'),
        verbosity: field(level, 'Verbosity of those files.'),
      }),
      'v1.VModuleConfiguration',
    ),
    'Verbosity of single source files (text format only).',
  ),
  options: field(
    struct('v1.FormatOptions', {
      text: field(struct('v1.TextOptions', routing), 'Options of the text format.'),
      json: field(struct('v1.JSONOptions', routing), 'Options of the JSON format.'),
    }),
    'Options of each format.',
  ),
});

const syncPeriods = {
  syncPeriod: field(duration, 'Rules are checked and repaired at least this often.'),
  minSyncPeriod: field(duration, 'Shortest time between two syncs; changes in between are collected.'),
};

const iptables = struct('v1alpha1.KubeProxyIPTablesConfiguration', {
  masqueradeBit: field(
    nullable(int32),
    'Bit of the packet mark that asks for masquerading (also ipvs mode).',
  ),
  masqueradeAll: field(bool, 'Masquerade all traffic to Service IPs (all modes but nftables).'),
  localhostNodePorts: field(nullable(bool), 'Serve IPv4 NodePorts on loopback addresses.'),
  ...syncPeriods,
});

const ipvs = struct('v1alpha1.KubeProxyIPVSConfiguration', {
  ...syncPeriods,
  scheduler: field(string, 'Scheduler of every virtual server; empty means `rr`.'),
  excludeCIDRs: field(
    strings,
    'Virtual servers in these ranges belong to other programs and are not changed.',
  ),
  strictARP: field(bool, 'Answer ARP only for addresses of the receiving interface.'),
  tcpTimeout: field(duration, 'Idle TCP connections; 0 keeps the system value.'),
  tcpFinTimeout: field(duration, 'TCP connections after a FIN; 0 keeps the system value.'),
  udpTimeout: field(duration, 'Idle UDP flows; 0 keeps the system value.'),
});

const nftables = struct('v1alpha1.KubeProxyNFTablesConfiguration', {
  masqueradeBit: field(nullable(int32), 'Bit of the packet mark that asks for masquerading.'),
  masqueradeAll: field(bool, 'Masquerade all traffic to Service IPs.'),
  ...syncPeriods,
});

const winkernel = struct('v1alpha1.KubeProxyWinkernelConfiguration', {
  networkName: field(string, 'Windows only, unused here.'),
  sourceVip: field(string, 'Windows only, unused here.'),
  enableDSR: field(bool, 'Windows only, unused here.'),
  rootHnsEndpointName: field(string, 'Windows only, unused here.'),
  forwardHealthCheckVip: field(bool, 'Windows only, unused here.'),
});

const detectLocal = struct('v1alpha1.DetectLocalConfiguration', {
  bridgeInterface: field(string, 'Bridge of local pods (BridgeInterface); at most 15 bytes.'),
  interfaceNamePrefix: field(
    string,
    'Prefix of the names of pod interfaces (InterfaceNamePrefix); at most 14 bytes.',
  ),
});

const conntrack = struct('v1alpha1.KubeProxyConntrackConfiguration', {
  maxPerCore: field(nullable(int32), 'Connections tracked per CPU core; 0 keeps the limit of the system.'),
  min: field(nullable(int32), 'Least number of connections tracked, regardless of the number of cores.'),
  tcpEstablishedTimeout: field(
    nullable(duration),
    'Idle established TCP connections; 0 keeps the system value.',
  ),
  tcpCloseWaitTimeout: field(nullable(duration), 'TCP connections in CLOSE_WAIT; 0 keeps the system value.'),
  tcpBeLiberal: field(bool, 'Let packets outside the TCP window pass as valid.'),
  udpTimeout: field(duration, 'UDP flows without replies; 0 keeps the system value.'),
  udpStreamTimeout: field(duration, 'UDP flows with replies; 0 keeps the system value.'),
});

/**
 * The configuration file, field by field in upstream's order. Decoding, strict checking, encoding and the
 * reference page are all driven by this table.
 */
export const v1alpha1 = struct('v1alpha1.KubeProxyConfiguration', {
  kind: field(string, `Always \`${KIND}\`.`),
  apiVersion: field(string, `Always \`${API_VERSION}\`.`),
  featureGates: optional(mapOf(bool), 'Feature gates to switch on or off.'),
  clientConnection: field(clientConnection, 'How to talk to the API server.'),
  logging: field(logging, 'What is logged, and how.'),
  hostnameOverride: field(string, 'Node name; empty means the host name.'),
  bindAddress: field(
    string,
    'Overrides the node IP and the primary IP family; only userspace mode listens on it.',
  ),
  healthzBindAddress: field(string, 'Address of the health server.'),
  metricsBindAddress: field(string, 'Address of the metrics server.'),
  bindAddressHardFail: field(bool, 'Stop when one of these servers cannot listen.'),
  enableProfiling: field(bool, 'Serve profiles under /debug/pprof on the metrics address.'),
  showHiddenMetricsForVersion: field(
    string,
    'Show metrics hidden since this minor version, the previous one.',
  ),
  mode: field(
    scalar('string', 'v1alpha1.ProxyMode'),
    '`iptables`, `ipvs`, `nftables` or `userspace`; empty means `iptables`.',
  ),
  iptables: field(iptables, 'Settings of the iptables mode; shared ones also serve ipvs and userspace.'),
  ipvs: field(ipvs, 'Settings of the ipvs mode.'),
  nftables: field(nftables, 'Settings of the nftables mode.'),
  winkernel: field(winkernel, 'Accepted for Windows nodes that share the file.'),
  detectLocalMode: field(
    scalar('string', 'v1alpha1.LocalMode'),
    'How traffic of local pods is recognised: `ClusterCIDR`, `NodeCIDR`, `BridgeInterface` or `InterfaceNamePrefix`.',
  ),
  detectLocal: field(detectLocal, 'What the detection needs.'),
  clusterCIDR: field(string, 'Pod addresses of the cluster: one CIDR, or one per family, comma-separated.'),
  nodePortAddresses: field(strings, 'Where NodePorts are served: CIDRs, `primary`, `localhost`, `all`.'),
  oomScoreAdj: field(nullable(int32), 'OOM score adjustment of this process.'),
  conntrack: field(conntrack, 'Connection tracking of the node.'),
  configSyncPeriod: field(duration, 'Accepted, but without effect: no object is delivered a second time.'),
  portRange: field(string, 'Ports of proxy sockets in userspace mode (`a-b`, `a+n`, `a`); unused in others.'),
  windowsRunAsService: optional(bool, 'Windows only, unused here.'),
});

/** A configuration in the layout of the file. */
export type V1Alpha1 = Value<typeof v1alpha1>;
