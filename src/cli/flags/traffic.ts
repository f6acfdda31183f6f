import { type FastPathScope, fastPathScopes } from '../../model/fast-path.ts';
import {
  parseResetDeparted,
  type ResetDeparted,
  resetDepartedAnnotation,
} from '../../model/own-annotations.ts';
import {
  bool,
  duration,
  type FlagType,
  int32,
  localMode,
  positive,
  proxyMode,
  string,
  stringSlice,
} from '../flag-types.ts';
import { type FlagValues, field, flag, type ProxyFlag } from './flag.ts';

const program = (o: FlagValues) => o;
const config = (o: FlagValues) => o.draft;
const detectLocal = (o: FlagValues) => o.draft.detectLocal;
const linux = (o: FlagValues) => o.draft.linux;
const iptables = (o: FlagValues) => o.draft.iptables;
const ipvs = (o: FlagValues) => o.draft.ipvs;

const resetDeparted: FlagType<ResetDeparted> = {
  name: 'off|tcp',
  parse(text) {
    const value = parseResetDeparted(text);
    if (!value) throw new Error('is none of off, tcp');
    return value;
  },
  format: (value) => value,
};

const fastPath: FlagType<FastPathScope> = {
  name: fastPathScopes.join('|'),
  parse(text) {
    const value = fastPathScopes.find((scope) => scope === text);
    if (!value) throw new Error(`is none of ${fastPathScopes.join(', ')}`);
    return value;
  },
  format: (value) => value,
};

export const trafficFlags: readonly ProxyFlag[] = [
  flag(
    'proxy-mode',
    proxyMode,
    field(config, 'mode'),
    'The proxy mode: "nftables", "iptables", "ipvs" or "userspace". When empty, "iptables".',
  ),
  flag(
    'reset-departed',
    resetDeparted,
    field(program, 'resetDeparted'),
    `With "tcp", in nftables mode, connections of Services to endpoints that are gone get a TCP reset at their next packet, for ten minutes; with "off" they do not. The annotation ${resetDepartedAnnotation} of a Service overrides it.`,
  ),
  flag(
    'nftables-fast-path',
    fastPath,
    field(program, 'fastPath'),
    'In nftables mode, forward packets of open TCP and UDP connections without running them through rules: those of "services", or "all" that the node forwards. Rules of other programs do not see these packets either.',
  ),
  flag(
    'nftables-fast-path-after',
    positive,
    field(program, 'fastPathAfter'),
    'The number of packets of a connection, in both directions together, before --nftables-fast-path applies to it.',
  ),
  flag(
    'cluster-cidr',
    string,
    field(program, 'clusterCIDR'),
    'Address range of the pods of the cluster, or one per IP family separated by a comma. Traffic from other addresses counts as external.',
  ),
  flag(
    'detect-local-mode',
    localMode,
    field(config, 'detectLocalMode'),
    'How traffic of local pods is recognised: "ClusterCIDR", "NodeCIDR", "BridgeInterface" or "InterfaceNamePrefix". When empty, "ClusterCIDR".',
  ),
  flag(
    'pod-bridge-interface',
    string,
    field(detectLocal, 'bridgeInterface'),
    'Bridge that local pods send through, for the mode BridgeInterface.',
  ),
  flag(
    'pod-interface-name-prefix',
    string,
    field(detectLocal, 'interfaceNamePrefix'),
    'Prefix of the interface names of local pods, for the mode InterfaceNamePrefix.',
  ),
  flag(
    'nodeport-addresses',
    stringSlice,
    field(config, 'nodePortAddresses'),
    'Where NodePorts are served: address ranges that select local addresses, or the words "primary", "localhost" and "all". When empty, everywhere in the modes iptables, ipvs and userspace, "primary" in nftables.',
    { default: [] },
  ),
  flag(
    'masquerade-all',
    bool,
    field(linux, 'masqueradeAll'),
    'Masquerade all traffic to cluster IPs, not only external traffic.',
  ),
  flag(
    'config-sync-period',
    duration,
    field(config, 'configSyncPeriod'),
    'Accepted, but without effect: objects are not delivered again.',
  ),
];

export const iptablesFlags: readonly ProxyFlag[] = [
  flag(
    'iptables-sync-period',
    duration,
    field(program, 'iptablesSyncPeriod'),
    'Longest time between two checks of the rules, in every mode but ipvs.',
  ),
  flag(
    'iptables-min-sync-period',
    duration,
    field(program, 'iptablesMinSyncPeriod'),
    'Shortest time between two updates of the rules, in every mode but ipvs; 0 means none.',
  ),
  flag(
    'iptables-masquerade-bit',
    int32,
    field(iptables, 'masqueradeBit'),
    'Bit of the packet mark, 0 to 31, that asks for masquerading in the modes iptables and ipvs.',
  ),
  flag(
    'iptables-localhost-nodeports',
    bool,
    field(iptables, 'localhostNodePorts'),
    'Serve NodePorts on IPv4 loopback addresses too, in iptables mode.',
  ),
];

export const ipvsFlags: readonly ProxyFlag[] = [
  flag(
    'ipvs-sync-period',
    duration,
    field(program, 'ipvsSyncPeriod'),
    'Longest time between two checks of the rules, in ipvs mode.',
  ),
  flag(
    'ipvs-min-sync-period',
    duration,
    field(program, 'ipvsMinSyncPeriod'),
    'Shortest time between two updates of the rules, in ipvs mode; 0 means none.',
  ),
  flag(
    'ipvs-scheduler',
    string,
    field(ipvs, 'scheduler'),
    'The ipvs scheduler, which chooses endpoints. When empty, "rr".',
  ),
  flag(
    'ipvs-exclude-cidrs',
    stringSlice,
    field(ipvs, 'excludeCIDRs'),
    'Address ranges whose virtual servers belong to other programs and are not changed.',
    { default: [] },
  ),
  flag(
    'ipvs-strict-arp',
    bool,
    field(ipvs, 'strictARP'),
    'Answer and announce ARP only for addresses of the receiving interface.',
  ),
  flag(
    'ipvs-tcp-timeout',
    duration,
    field(ipvs, 'tcpTimeout'),
    'Idle time after which ipvs forgets a TCP connection; 0 keeps the system value.',
  ),
  flag(
    'ipvs-tcpfin-timeout',
    duration,
    field(ipvs, 'tcpFinTimeout'),
    'Time after a FIN until ipvs forgets a TCP connection; 0 keeps the system value.',
  ),
  flag(
    'ipvs-udp-timeout',
    duration,
    field(ipvs, 'udpTimeout'),
    'Idle time after which ipvs forgets a UDP exchange; 0 keeps the system value.',
  ),
];
