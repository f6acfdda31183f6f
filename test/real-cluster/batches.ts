/** Some of upstream's end-to-end tests, chosen by name as ginkgo does it. */
export interface Batch {
  /** Tests whose full names match; without the other regular expression. */
  readonly focus: string;
  readonly skip: string;
  /** Lines that the tests need in kube-proxy's configuration, per mode. */
  readonly configuration?: Readonly<Record<string, readonly string[]>>;
  /** One test at a time: the tests change what others use. */
  readonly isSerial?: true;
}

/** Subjects of the tests that a proxy can touch. */
const subjects = [
  'Services',
  'Networking (?:should check kube-proxy|should provide unchanging|Granular Checks)',
  'Conntrack',
  'KubeProxy',
  'HostPort',
  'NoSNAT',
  'Connectivity Pod Lifecycle',
  'Topology Hints',
  'Traffic Distribution',
  'EndpointSlice',
  'Endpoints',
  'Service CIDRs',
  'ServiceCIDR and IPAddress API',
  'Service endpoints latency',
  'API Server',
  'Proxy',
  'LoadBalancers',
  'DNS (?:should|HostNetwork)',
  '\\[Feature:IPv6DualStack\\]',
];

/** docs/conformance.md gives the reasons. */
const notHere = [
  'Disruptive',
  'Serial',
  'SCTP|sctp',
  'let a node pull',
  'proxy logs on node',
  'Provider:gce',
  'configurable pod|search path|Hostname field|/etc/hosts',
  'rolling update',
];

export const batches: Readonly<Record<string, Batch>> = {
  /** Everything that can run at the same time. */
  parallel: { focus: `\\[sig-network\\] (?:${subjects.join('|')})`, skip: notHere.join('|') },
  serial: {
    focus: '\\[sig-network\\] (?:Services|Networking).*(?:\\[Serial\\]|restarting kube-proxy)',
    skip: 'restarting apiserver',
    isSerial: true,
  },
  localhost: {
    focus: '\\[sig-network\\] LocalhostNodePorts',
    skip: 'let a node pull',
    configuration: {
      nftables: [
        'featureGates: {KubeProxyNFTablesLocalhostNodePorts: true}',
        'nodePortAddresses: [172.31.255.0/24, "fd00:31:255::/64", 127.0.0.0/8]',
      ],
    },
  },
  'load-balancers': { focus: '\\[sig-network\\] LoadBalancers', skip: 'Disruptive|rolling update' },
  /** A few tests, to see in minutes whether the cluster works. */
  brief: {
    focus:
      '\\[sig-network\\] Services should (?:serve multiport endpoints|be able to create a functioning NodePort|provide secure master)',
    skip: 'Disruptive|Serial',
  },
};
