/**
 * Names of nf_tables tables in which this product only watches packets: the proxy while it counts traffic, and
 * kube-proxyctl while it traces. Their rules stop no packet, and each goes with the process that made it.
 */
export const watchingTables = {
  observer: 'kube-proxy-observer-',
  meter: 'kube-proxy-meter-',
  trace: 'kube-proxyctl-trace-',
} as const;

export function isWatchingTable(name: string): boolean {
  return Object.values(watchingTables).some((prefix) => name.startsWith(prefix));
}
