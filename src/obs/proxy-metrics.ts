import {
  type Counter,
  type Gauge,
  type Histogram,
  ignoredMetric,
  type MetricOptions,
  type ScrapedMetric,
} from './metrics.ts';
import type { Registry } from './registry.ts';

/** Metrics that only some modes expose; a mode names its groups. All modes expose the rest. */
export type MetricGroup =
  | 'partial syncs'
  | 'iptables restores'
  | 'iptables rules'
  | 'nftables transactions'
  | 'nftables localhost node ports'
  | 'repairs'
  | 'proxied traffic';

/**
 * Everything the proxy counts. All fields are always there. A metric that the running mode does not expose ignores its
 * values, so that no caller needs to know the mode.
 */
export type ProxyMetrics = Readonly<ReturnType<typeof createProxyMetrics>>;

/** Declares the metrics of all modes and those of `groups`, under the names, labels and buckets that upstream uses. */
export function createProxyMetrics(registry: Registry, groups: readonly MetricGroup[]) {
  const all = new Declarer(registry);
  const only = (group: MetricGroup) => (groups.includes(group) ? all : new Declarer(undefined));
  return {
    ...syncMetrics(all, only('partial syncs')),
    ...changeMetrics(all),
    ...iptablesMetrics(only('iptables rules'), only('iptables restores')),
    ...nftablesMetrics(only('nftables transactions')),
    ...localhostNodePortMetrics(only('nftables localhost node ports')),
    ...conntrackMetrics(all),
    ...ownMetrics(all, only('repairs')),
    ...userspaceMetrics(only('proxied traffic')),
  };
}

const family = ['ip_family'];

/** Registers metrics. Without a registry, the metrics ignore their values. The default label is `ip_family`. */
class Declarer {
  readonly #registry: Registry | undefined;

  constructor(registry: Registry | undefined) {
    this.#registry = registry;
  }

  counter(name: string, help: string, labels = family): Counter {
    return this.#registry?.counter(options(name, help, labels)) ?? ignoredMetric;
  }

  gauge(name: string, help: string, labels = family): Gauge {
    return this.#registry?.gauge(options(name, help, labels)) ?? ignoredMetric;
  }

  durations(name: string, help: string, buckets = syncBuckets): Histogram {
    return this.#registry?.histogram({ ...options(name, help, family), buckets }) ?? ignoredMetric;
  }

  /** A metric whose values are read at scrape time. */
  scraped(type: 'counter' | 'gauge', name: string, help: string, labels = family): ScrapedMetric {
    return this.#registry?.scraped(type, options(name, help, labels)) ?? ignoredMetric;
  }
}

function options(name: string, help: string, labels: readonly string[]): MetricOptions {
  return { name: `kubeproxy_${name}`, help, labels, stability: 'ALPHA' };
}

/** Buckets of every sync duration: 1 ms doubling up to 16.384 s. */
const syncBuckets = Array.from({ length: 15 }, (_, k) => 0.001 * 2 ** k);

/** Fine where a healthy cluster is, coarse up to five minutes. */
const programmingBuckets = [0, 0.25, 0.5, ...steps(1, 59, 1), ...steps(60, 115, 5), ...steps(120, 300, 30)];

function steps(first: number, last: number, step: number): number[] {
  return Array.from({ length: (last - first) / step + 1 }, (_, i) => first + i * step);
}

const rules = 'sync_proxy_rules';

function syncMetrics(all: Declarer, partial: Declarer) {
  return {
    /** Every sync, whether it succeeded or not. */
    syncDuration: all.durations(`${rules}_duration_seconds`, 'Time one sync took'),
    fullSyncDuration: partial.durations(
      'sync_full_proxy_rules_duration_seconds',
      'Time one sync of everything took',
    ),
    partialSyncDuration: partial.durations(
      'sync_partial_proxy_rules_duration_seconds',
      'Time one sync of only the changed services took',
    ),
    lastQueued: all.gauge(`${rules}_last_queued_timestamp_seconds`, 'When a sync was last requested'),
    lastSync: all.gauge(`${rules}_last_timestamp_seconds`, 'When a sync last succeeded'),
    networkProgrammingDuration: all.durations(
      'network_programming_duration_seconds',
      'Time from a change of endpoints in the cluster until this node followed it',
      programmingBuckets,
    ),
    /** traffic_policy is `internal` or `external`. */
    noLocalEndpoints: all.gauge(
      `${rules}_no_local_endpoints_total`,
      'Service ports whose Local traffic policy finds no endpoint on this node',
      ['traffic_policy', ...family],
    ),
  };
}

/** Without the label `ip_family`: both families share these, as upstream's do. */
function changeMetrics(all: Declarer) {
  return {
    endpointChangesPending: all.gauge(
      `${rules}_endpoint_changes_pending`,
      'Endpoint changes that wait for a sync',
      [],
    ),
    endpointChangesTotal: all.counter(`${rules}_endpoint_changes_total`, 'EndpointSlice events seen', []),
    serviceChangesPending: all.gauge(
      `${rules}_service_changes_pending`,
      'Service changes that wait for a sync',
      [],
    ),
    serviceChangesTotal: all.counter(`${rules}_service_changes_total`, 'Service events seen', []),
    healthzTotal: all.counter('proxy_healthz_total', 'Answers of /healthz by status code', ['code']),
    livezTotal: all.counter('proxy_livez_total', 'Answers of /livez by status code', ['code']),
  };
}

function iptablesMetrics(rulesOnly: Declarer, restores: Declarer) {
  const perTable = ['table', ...family];
  return {
    iptablesRestoreFailures: restores.counter(
      `${rules}_iptables_restore_failures_total`,
      'Rule sets that iptables-restore refused',
    ),
    iptablesPartialRestoreFailures: rulesOnly.counter(
      `${rules}_iptables_partial_restore_failures_total`,
      'Syncs of only the changed services that failed',
    ),
    iptablesRulesTotal: rulesOnly.gauge(`${rules}_iptables_total`, 'Rules in the kernel', perTable),
    iptablesRulesLast: rulesOnly.gauge(`${rules}_iptables_last`, 'Rules the last sync wrote', perTable),
    ctStateInvalidDropped: rulesOnly.scraped(
      'counter',
      'iptables_ct_state_invalid_dropped_packets_total',
      'Packets dropped because conntrack found them invalid',
      [],
    ),
    localhostNodePortsAccepted: rulesOnly.scraped(
      'counter',
      'iptables_localhost_nodeports_accepted_packets_total',
      'Packets to node ports on loopback addresses that were accepted',
      [],
    ),
  };
}

function nftablesMetrics(nftables: Declarer) {
  return {
    nftablesSyncFailures: nftables.counter(
      `${rules}_nftables_sync_failures_total`,
      'Transactions that the kernel refused',
    ),
    nftablesCleanupFailures: nftables.counter(
      `${rules}_nftables_cleanup_failures_total`,
      'Removals of stale objects that failed',
    ),
  };
}

function localhostNodePortMetrics(gated: Declarer) {
  const port = 'nftables_localhost_nodeport';
  return {
    localhostNodePortListeners: gated.gauge(`${port}_listeners`, 'Node ports served on loopback'),
    localhostNodePortListenFailures: gated.counter(
      `${port}_listener_creation_failures_total`,
      'Node ports on loopback that could not be opened',
    ),
    localhostNodePortRejected: gated.scraped(
      'counter',
      `${port}_rejected_packets_total`,
      'Packets to node ports on loopback that were rejected',
      [...family, 'protocol'],
    ),
  };
}

function conntrackMetrics(all: Declarer) {
  return {
    conntrackSyncDuration: all.durations(
      'conntrack_reconciler_sync_duration_seconds',
      'Time one pass over the conntrack table took',
    ),
    conntrackDeleted: all.counter(
      'conntrack_reconciler_deleted_entries_total',
      'Stale conntrack entries removed',
    ),
  };
}

/** Metrics upstream does not have; the prefix keeps them clear of its names. */
function ownMetrics(all: Declarer, repairing: Declarer) {
  return {
    repairs: repairing.counter('ts_repairs_total', 'Repairs of rules that another program had changed', [
      ...family,
    ]),
    problems: all.scraped('gauge', 'ts_problems', 'Problems that `kube-proxyctl status` shows', ['kind']),
    changedObjects: repairing.counter(
      'ts_changed_objects_total',
      'Kernel objects that other programs added to our rules or deleted from them',
      [...family, 'object'],
    ),
    rulesWrong: repairing.scraped(
      'counter',
      'ts_rules_wrong_seconds_total',
      'Time in which another program had changed the rules and they were not repaired yet',
      [...family],
    ),
    watchConnected: all.scraped('gauge', 'ts_watch_connected', 'Whether the API server sends changes', [
      'resource',
    ]),
    watchStale: all.scraped('gauge', 'ts_watch_stale_seconds', 'Time for which changes may be missing', [
      'resource',
    ]),
    /** 1 for every object that is not programmed as it asks. */
    setAside: all.scraped('gauge', 'ts_set_aside', 'Objects not (fully) programmed', [
      ...family,
      'reason',
      'object',
    ]),
  };
}

/** Traffic through this process in userspace mode, for which upstream had no metrics. */
export type UserspaceMetrics = ReturnType<typeof userspaceMetrics>;

function userspaceMetrics(userspace: Declarer) {
  const labels = ['service', 'endpoint'];
  return {
    userspaceConnections: userspace.scraped(
      'counter',
      'ts_userspace_connections_total',
      'Connections and UDP sessions begun with an endpoint',
      labels,
    ),
    userspaceOpen: userspace.scraped(
      'gauge',
      'ts_userspace_open_connections',
      'Connections and UDP sessions open with an endpoint',
      labels,
    ),
    /** direction is `in` or `out`. */
    userspaceBytes: userspace.scraped(
      'counter',
      'ts_userspace_bytes_total',
      'Bytes passed on to (in) and from (out) an endpoint',
      [...labels, 'direction'],
    ),
    userspaceDialFailures: userspace.scraped(
      'counter',
      'ts_userspace_dial_failures_total',
      'Attempts to reach an endpoint that failed',
      labels,
    ),
  };
}
