import { bool, int32, ip, ipport, networks, positive, serviceMetrics } from '../flag-types.ts';
import { type FlagValues, field, flag, type ProxyFlag } from './flag.ts';

const program = (o: FlagValues) => o;
const config = (o: FlagValues) => o.draft;

export const servingFlags: readonly ProxyFlag[] = [
  flag(
    'bind-address',
    ip,
    field(config, 'bindAddress'),
    'IP address of the node instead of the one in the Node object; 0.0.0.0 and :: mean no override. Nothing listens on it.',
  ),
  flag(
    'healthz-bind-address',
    ipport,
    field(config, 'healthzBindAddress'),
    'Address of the health check server; without a port, 10256 is added.',
  ),
  flag(
    'metrics-bind-address',
    ipport,
    field(config, 'metricsBindAddress'),
    'Address of the metrics server; without a port, 10249 is added.',
  ),
  flag(
    'bind-address-hard-fail',
    bool,
    field(config, 'bindAddressHardFail'),
    'Exit when the health check or metrics server cannot listen, instead of retrying.',
  ),
  flag(
    'profiling',
    bool,
    field(config, 'enableProfiling'),
    'Serve profiling pages under /debug/pprof on the metrics address.',
  ),
  flag(
    'inspection-from',
    networks,
    field(program, 'inspectionFrom'),
    'Addresses or CIDRs that may read /debug/kube-proxy/ on the metrics address, besides loopback addresses. The pages show Services and endpoints and change nothing.',
  ),
  flag(
    'service-metrics',
    serviceMetrics,
    field(program, 'serviceMetrics'),
    'Metrics of the traffic of Services: connections, bytes, or both. Without it, traffic is counted only while somebody asks the inspection API.',
  ),
  flag(
    'service-metrics-max',
    positive,
    field(program, 'serviceMetricsMax'),
    'The number of service ports with their own series in --service-metrics; the others together are the Service "other".',
  ),
  flag('healthz-port', int32, field(program, 'healthzPort'), '', {
    deprecated: 'use --healthz-bind-address instead.',
  }),
  flag('metrics-port', int32, field(program, 'metricsPort'), '', {
    deprecated: 'use --metrics-bind-address instead.',
  }),
];
