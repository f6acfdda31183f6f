export const proxyModes = ['iptables', 'ipvs', 'nftables', 'userspace'] as const;

/** How packets reach endpoints. */
export type ProxyMode = (typeof proxyModes)[number];

export function isProxyMode(name: string): name is ProxyMode {
  return proxyModes.some((mode) => mode === name);
}
