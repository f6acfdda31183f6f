/** What an operator does about each metric of the proxy. A test keeps the names the same as the declared ones. */
export const metricAdvice: Readonly<Record<string, string>> = {
  kubeproxy_conntrack_reconciler_deleted_entries_total:
    'Nothing: it grows when endpoints of UDP Services go away.',
  kubeproxy_conntrack_reconciler_sync_duration_seconds:
    'Seconds mean a large connection table. It runs beside the syncs and delays none.',
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total:
    'Growing fast: packets come back by another way than they went, or out of the TCP window. See `conntrack.tcpBeLiberal`.',
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total:
    'Stays 0: nobody uses node ports on loopback, and `iptables.localhostNodePorts` can be switched off.',
  kubeproxy_network_programming_duration_seconds:
    'The figure to watch. High on all nodes: look at the control plane. High on one: look at its sync durations and its CPU.',
  kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total:
    'Another program holds the port; the log names it.',
  kubeproxy_nftables_localhost_nodeport_listeners: 'Nothing.',
  kubeproxy_nftables_localhost_nodeport_rejected_packets_total:
    'Somebody on the node asks a node port that has no endpoints.',
  kubeproxy_proxy_healthz_total:
    'Codes other than 200: syncs are overdue, or the node is being removed. See `kube-proxyctl status`.',
  kubeproxy_proxy_livez_total:
    'Codes other than 200: syncs are overdue. The kubelet restarts the pod when it probes this.',
  kubeproxy_sync_full_proxy_rules_duration_seconds:
    'Full syncs are rare. Their length tells what a restart costs.',
  kubeproxy_sync_partial_proxy_rules_duration_seconds:
    'Rising with the number of Services: CPU is short on the node.',
  kubeproxy_sync_proxy_rules_duration_seconds: 'Above `minSyncPeriod` for long: CPU is short on the node.',
  kubeproxy_sync_proxy_rules_endpoint_changes_pending:
    'Stays above 0: syncs fail or never end. The log has lines "Sync failed".',
  kubeproxy_sync_proxy_rules_endpoint_changes_total: 'Its rate is the churn of the cluster.',
  kubeproxy_sync_proxy_rules_iptables_last: 'Near the total at every sync: partial syncs fail.',
  kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total:
    'A full sync follows by itself. Growing: look for "Partial sync refused" in the log.',
  kubeproxy_sync_proxy_rules_iptables_restore_failures_total:
    'Growing: rules on the node stand still. The log has what iptables-restore said.',
  kubeproxy_sync_proxy_rules_iptables_total: 'Tens of thousands: consider nftables mode.',
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds:
    'Later than the last success by minutes: the rules are out of date. Alert on the difference.',
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: 'See the one above.',
  kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total:
    "Tried again at the next sync. Growing: the log has the kernel's words.",
  kubeproxy_sync_proxy_rules_nftables_sync_failures_total:
    "Growing: rules on the node stand still. The log has the kernel's words.",
  kubeproxy_sync_proxy_rules_no_local_endpoints_total:
    'Not 0: traffic to these Services is dropped here by their policy. Right behind a load balancer with health checks, wrong elsewhere. In ipvs mode it counts Services, and outside traffic goes to endpoints on other nodes.',
  kubeproxy_sync_proxy_rules_service_changes_pending: 'As with endpoint changes.',
  kubeproxy_sync_proxy_rules_service_changes_total: 'Nothing.',
  kubeproxy_ts_repairs_total:
    'Growing: another program changes the rules, or two proxies run. The log names the program. See [troubleshooting](troubleshooting.md#after-nft-flush-ruleset-or-an-iptables-flush).',
  kubeproxy_ts_set_aside:
    'A series names an object that this node cannot program as it asks. The event and the log say why; change the object.',
  kubeproxy_ts_userspace_bytes_total: 'Traffic per endpoint.',
  kubeproxy_ts_userspace_connections_total:
    'Uneven between endpoints of one Service: affinity, or few long connections.',
  kubeproxy_ts_userspace_dial_failures_total:
    'The endpoint does not answer though it counts as ready. Look at the pod.',
  kubeproxy_ts_userspace_open_connections:
    'Near the limit that the log tells at start ("Room for connections"): raise the limit of open files.',
};
