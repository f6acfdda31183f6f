const inNat: readonly string[] = [
  'KUBE-PORTALS-HOST',
  'KUBE-PORTALS-CONTAINER',
  'KUBE-NODEPORT-HOST',
  'KUBE-NODEPORT-CONTAINER',
];
const inFilter: readonly string[] = ['KUBE-NODEPORT-NON-LOCAL'];

/** Whether upstream's userspace mode, which had iptables rules, made this chain. */
export function isOldChain(table: string, chain: string): boolean {
  return (table === 'nat' && inNat.includes(chain)) || (table === 'filter' && inFilter.includes(chain));
}
