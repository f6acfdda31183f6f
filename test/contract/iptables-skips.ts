const noServiceNetwork = 'iptables mode knows no service network: addresses that no service has are routed';
const loopbackRouted = 'iptables mode routes loopback node ports (C46) and has no listeners there';

/** Stories about features that iptables mode, by design, does not have. */
export const iptablesSkips: Readonly<Record<string, string>> = {
  'C8 with ICMP': 'iptables mode captures the ports of services; ICMP to a cluster IP is routed',
  'changes/service network': noServiceNetwork,
  'changes/second service network': noServiceNetwork,
  C47: loopbackRouted,
  C48: loopbackRouted,
  C49: loopbackRouted,
  C50: loopbackRouted,
  'loopback/follows endpoints': loopbackRouted,
  'loopback/affinity': loopbackRouted,
  C53: 'iptables mode does not check the kernel version',
};
