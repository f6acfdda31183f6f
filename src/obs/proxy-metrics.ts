import type { Counter, Gauge, Histogram, ScrapedMetric } from './metrics.ts';
import { Declarer, programmingBuckets, syncBuckets } from './proxy-metric-declarer.ts';
import type { Registry } from './registry.ts';
import { type UserspaceMetrics, userspaceMetrics } from './userspace-metrics.ts';

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
 * Everything the proxy counts. All fields are always there. A metric that the running mode does not expose accepts
 * values and ignores them, so that no caller needs to know the mode. Unless said otherwise a metric has the one label
 * `ip_family`.
 */
export interface ProxyMetrics extends UserspaceMetrics {
  /** Every sync past the gate, whether it succeeded or not. */
  readonly syncDuration: Histogram;
  readonly fullSyncDuration: Histogram;
  readonly partialSyncDuration: Histogram;
  /** Unix time, in seconds, of the latest request for a sync. */
  readonly lastQueued: Gauge;
  /** Unix time, in seconds, of the latest successful sync. */
  readonly lastSync: Gauge;
  readonly networkProgrammingDuration: Histogram;
  /** Labels: traffic_policy (`internal`, `external`), ip_family. */
  readonly noLocalEndpoints: Gauge;
  /** No labels: both families share them, as upstream's do. */
  readonly endpointChangesPending: Gauge;
  readonly endpointChangesTotal: Counter;
  readonly serviceChangesPending: Gauge;
  readonly serviceChangesTotal: Counter;
  /** Label: code. */
  readonly healthzTotal: Counter;
  readonly livezTotal: Counter;

  readonly iptablesRestoreFailures: Counter;
  readonly iptablesPartialRestoreFailures: Counter;
  /** Labels: table (`filter`, `nat`), ip_family. */
  readonly iptablesRulesTotal: Gauge;
  readonly iptablesRulesLast: Gauge;
  /** No labels. */
  readonly ctStateInvalidDropped: ScrapedMetric;
  readonly localhostNodePortsAccepted: ScrapedMetric;

  readonly nftablesSyncFailures: Counter;
  readonly nftablesCleanupFailures: Counter;
  readonly localhostNodePortListeners: Gauge;
  readonly localhostNodePortListenFailures: Counter;
  /** Labels: ip_family, protocol. */
  readonly localhostNodePortRejected: ScrapedMetric;

  readonly conntrackSyncDuration: Histogram;
  readonly conntrackDeleted: Counter;

  /** Ours: kernel objects put back after somebody else removed or changed them. Labels: ip_family, object. */
  readonly repairs: Counter;
  /** Ours: 1 for every object that is not programmed as it asks. Labels: ip_family, reason, object. */
  readonly setAside: ScrapedMetric;
}

const family = ['ip_family'];

/** Declares the metrics of all modes and those of `groups`, under the names, labels and buckets that upstream uses. */
export function createProxyMetrics(registry: Registry, groups: readonly MetricGroup[]): ProxyMetrics {
  const declare = new Declarer(registry);
  const only = (group: MetricGroup) => (groups.includes(group) ? declare : new Declarer(undefined));
  return {
    ...syncMetrics(declare, only('partial syncs')),
    ...changeMetrics(declare),
    iptablesRestoreFailures: only('iptables restores').counter(
      'sync_proxy_rules_iptables_restore_failures_total',
      'Rule sets that iptables-restore refused',
      family,
    ),
    ...iptablesMetrics(only('iptables rules')),
    ...nftablesMetrics(only('nftables transactions')),
    ...localhostNodePortMetrics(only('nftables localhost node ports')),
    ...conntrackMetrics(declare),
    ...ownMetrics(declare, only('repairs')),
    ...userspaceMetrics(only('proxied traffic')),
  };
}

function syncMetrics(declare: Declarer, partial: Declarer) {
  const rules = 'sync_proxy_rules';
  return {
    syncDuration: declare.durations(`${rules}_duration_seconds`, 'Time one sync took', syncBuckets),
    fullSyncDuration: partial.durations(
      'sync_full_proxy_rules_duration_seconds',
      'Time one sync of everything took',
      syncBuckets,
    ),
    partialSyncDuration: partial.durations(
      'sync_partial_proxy_rules_duration_seconds',
      'Time one sync of only the changed services took',
      syncBuckets,
    ),
    lastQueued: declare.gauge(
      `${rules}_last_queued_timestamp_seconds`,
      'When a sync was last asked for',
      family,
    ),
    lastSync: declare.gauge(`${rules}_last_timestamp_seconds`, 'When a sync last succeeded', family),
    networkProgrammingDuration: declare.durations(
      'network_programming_duration_seconds',
      'Time from a change of endpoints in the cluster until this node followed it',
      programmingBuckets,
    ),
    noLocalEndpoints: declare.gauge(
      `${rules}_no_local_endpoints_total`,
      'Service ports whose Local traffic policy finds no endpoint on this node',
      ['traffic_policy', ...family],
    ),
  };
}

function changeMetrics(declare: Declarer) {
  const rules = 'sync_proxy_rules';
  return {
    endpointChangesPending: declare.gauge(
      `${rules}_endpoint_changes_pending`,
      'Endpoint changes that wait for a sync',
      [],
    ),
    endpointChangesTotal: declare.counter(`${rules}_endpoint_changes_total`, 'EndpointSlice events seen', []),
    serviceChangesPending: declare.gauge(
      `${rules}_service_changes_pending`,
      'Service changes that wait for a sync',
      [],
    ),
    serviceChangesTotal: declare.counter(`${rules}_service_changes_total`, 'Service events seen', []),
    healthzTotal: declare.counter('proxy_healthz_total', 'Answers of /healthz by status code', ['code']),
    livezTotal: declare.counter('proxy_livez_total', 'Answers of /livez by status code', ['code']),
  };
}

function iptablesMetrics(declare: Declarer) {
  const rules = 'sync_proxy_rules_iptables';
  return {
    iptablesPartialRestoreFailures: declare.counter(
      `${rules}_partial_restore_failures_total`,
      'Syncs of only the changed services that failed',
      family,
    ),
    iptablesRulesTotal: declare.gauge(`${rules}_total`, 'Rules in the kernel', ['table', ...family]),
    iptablesRulesLast: declare.gauge(`${rules}_last`, 'Rules the last sync wrote', ['table', ...family]),
    ctStateInvalidDropped: declare.scraped(
      'counter',
      'iptables_ct_state_invalid_dropped_packets_total',
      'Packets dropped because conntrack found them invalid',
      [],
    ),
    localhostNodePortsAccepted: declare.scraped(
      'counter',
      'iptables_localhost_nodeports_accepted_packets_total',
      'Packets to node ports on loopback addresses that were accepted',
      [],
    ),
  };
}

function nftablesMetrics(declare: Declarer) {
  return {
    nftablesSyncFailures: declare.counter(
      'sync_proxy_rules_nftables_sync_failures_total',
      'Transactions that the kernel refused',
      family,
    ),
    nftablesCleanupFailures: declare.counter(
      'sync_proxy_rules_nftables_cleanup_failures_total',
      'Removals of stale objects that failed',
      family,
    ),
  };
}

function localhostNodePortMetrics(declare: Declarer) {
  const port = 'nftables_localhost_nodeport';
  return {
    localhostNodePortListeners: declare.gauge(`${port}_listeners`, 'Node ports served on loopback', family),
    localhostNodePortListenFailures: declare.counter(
      `${port}_listener_creation_failures_total`,
      'Node ports on loopback that could not be opened',
      family,
    ),
    localhostNodePortRejected: declare.scraped(
      'counter',
      `${port}_rejected_packets_total`,
      'Packets to node ports on loopback that were rejected',
      [...family, 'protocol'],
    ),
  };
}

function conntrackMetrics(declare: Declarer) {
  return {
    conntrackSyncDuration: declare.durations(
      'conntrack_reconciler_sync_duration_seconds',
      'Time one pass over the conntrack table took',
      syncBuckets,
    ),
    conntrackDeleted: declare.counter(
      'conntrack_reconciler_deleted_entries_total',
      'Stale conntrack entries removed',
      family,
    ),
  };
}

/** Metrics upstream does not have; the prefix keeps them clear of its names. */
function ownMetrics(declare: Declarer, repairing: Declarer) {
  return {
    repairs: repairing.counter('ts_repairs_total', 'Kernel objects put back after a change from outside', [
      ...family,
      'object',
    ]),
    setAside: declare.scraped('gauge', 'ts_set_aside', 'Objects that are not, or in part not, programmed', [
      ...family,
      'reason',
      'object',
    ]),
  };
}
