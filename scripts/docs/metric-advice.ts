/** Advice for operators about each metric of the proxy. A test compares the names with the declared ones. */
export const metricAdvice: Readonly<Record<string, string>> = {
  kubeproxy_conntrack_reconciler_deleted_entries_total:
    'Nothing: it grows when endpoints of UDP Services are removed.',
  kubeproxy_conntrack_reconciler_sync_duration_seconds:
    'Seconds mean a large connection table. It runs in the background and delays no sync.',
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total:
    'Growing fast: answers take another path than requests, or are outside the TCP window. See `conntrack.tcpBeLiberal`.',
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total:
    'Stays 0: no program uses node ports on loopback, and `iptables.localhostNodePorts` can be switched off.',
  kubeproxy_network_programming_duration_seconds:
    'The most important figure. High on all nodes: check the control plane. High on one: check its sync durations and its CPU.',
  kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total:
    'Another program uses the port; the log has the port.',
  kubeproxy_nftables_localhost_nodeport_listeners: 'Nothing.',
  kubeproxy_nftables_localhost_nodeport_rejected_packets_total:
    'A program on the node uses a node port that has no endpoints.',
  kubeproxy_proxy_healthz_total:
    'Codes other than 200: syncs are overdue, or the node is being removed. See `kube-proxyctl status`.',
  kubeproxy_proxy_livez_total:
    'Codes other than 200: syncs are overdue. The kubelet restarts the pod when it probes this.',
  kubeproxy_sync_full_proxy_rules_duration_seconds: 'Full syncs are rare. A restart takes about as long.',
  kubeproxy_sync_partial_proxy_rules_duration_seconds:
    'Rising with the number of Services: CPU is short on the node.',
  kubeproxy_sync_proxy_rules_duration_seconds: 'Above `minSyncPeriod` for long: CPU is short on the node.',
  kubeproxy_sync_proxy_rules_endpoint_changes_pending:
    'Stays above 0: syncs fail or do not end. The log has lines "Sync failed".',
  kubeproxy_sync_proxy_rules_endpoint_changes_total:
    'Its rate is the rate of endpoint changes in the cluster.',
  kubeproxy_sync_proxy_rules_iptables_last: 'Near the total at every sync: partial syncs fail.',
  kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total:
    'A full sync follows by itself. Growing: look for "Partial sync refused" in the log.',
  kubeproxy_sync_proxy_rules_iptables_restore_failures_total:
    'Growing: the rules on the node are not updated. The log has the error of iptables-restore.',
  kubeproxy_sync_proxy_rules_iptables_total: 'Tens of thousands: consider nftables mode.',
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds:
    'Minutes later than the last success: the rules are out of date. Alert on the difference.',
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: 'See the metric above.',
  kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total:
    "The next sync retries it. Growing: the log has the kernel's error.",
  kubeproxy_sync_proxy_rules_nftables_sync_failures_total:
    "Growing: the rules on the node are not updated. The log has the kernel's error.",
  kubeproxy_sync_proxy_rules_no_local_endpoints_total:
    'Not 0: this node drops traffic to these Services, as their policy says. That is right behind a load balancer with health checks, wrong elsewhere. In ipvs mode it counts Services, and outside traffic goes to endpoints on other nodes.',
  kubeproxy_sync_proxy_rules_service_changes_pending: 'As with endpoint changes.',
  kubeproxy_sync_proxy_rules_service_changes_total: 'Nothing.',
  kubeproxy_ts_service_bytes_total:
    'Only with `--service-metrics=bytes`. Its rate is the traffic of a Service on this node.',
  kubeproxy_ts_service_connections_total:
    'Only with `--service-metrics=connections`. Its rate is the number of new connections on this node.',
  kubeproxy_ts_service_failed_connections_total:
    'Only with `--service-metrics=connections`. Growing: `kube-proxyctl flows -w` shows each, with the reason.',
  kubeproxy_ts_service_open_connections:
    'Only with `--service-metrics=connections`. Growing without end: clients or endpoints leak connections.',
  kubeproxy_ts_build_info:
    'More than one version or commit in the cluster: a roll-out is under way, or has stopped.',
  kubeproxy_ts_conntrack_dropped_total:
    'Growing: new connections fail on this node. See [troubleshooting](troubleshooting.md#the-connection-table-fills).',
  kubeproxy_ts_conntrack_early_dropped_total:
    'Growing: the table is full. See [troubleshooting](troubleshooting.md#the-connection-table-fills).',
  kubeproxy_ts_conntrack_entries:
    'Near the limit: new connections will fail soon. See [troubleshooting](troubleshooting.md#the-connection-table-fills).',
  kubeproxy_ts_conntrack_entries_limit: 'Set it with `conntrack.maxPerCore` and `conntrack.min`.',
  kubeproxy_ts_conntrack_insert_failed_total:
    'Growing slowly is normal: two packets of a new UDP flow came at once, mostly DNS. Growing fast: clients run out of source ports.',
  kubeproxy_ts_problems:
    'One series per kind of [problem](#problems), with their number. Above 0: `kube-proxyctl status` says what is wrong.',
  kubeproxy_ts_changed_objects_total:
    'Which kinds of objects other programs change; see `kubeproxy_ts_repairs_total`.',
  kubeproxy_ts_rules_wrong_seconds_total:
    'Growing: Services of this node did not work for that long, because another program changed the rules. See [troubleshooting](troubleshooting.md#another-program-keeps-changing-the-rules).',
  kubeproxy_ts_repairs_total:
    'Growing: another program changes the rules, or two proxies run. The log names the program. See [troubleshooting](troubleshooting.md#another-program-keeps-changing-the-rules).',
  kubeproxy_ts_set_aside:
    'A series names an object that this node cannot (fully) program. The event and the log have the reason; change the object.',
  kubeproxy_ts_userspace_bytes_total: 'Traffic per endpoint.',
  kubeproxy_ts_userspace_connections_total:
    'Uneven between endpoints of one Service: affinity, or few long connections.',
  kubeproxy_ts_userspace_dial_failures_total: 'The endpoint is ready but does not answer. Check the pod.',
  kubeproxy_ts_userspace_open_connections:
    'Near the limit that the log shows at the start ("Connection limits"): raise the limit on open files.',
  kubeproxy_ts_watch_connected:
    '0 for minutes: the rules follow the last known state. `kube-proxyctl status` says why. See [troubleshooting](troubleshooting.md#the-api-server-is-gone).',
  kubeproxy_ts_watch_stale_seconds: 'How long the state above has lasted; 0 while connected.',
};
