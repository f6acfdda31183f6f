/** The kubelet writes it. iptables mode, here and upstream, adds the rule with `localnetComment`, as the kubelet does. */
export const sharedChain = 'KUBE-FIREWALL';

/** The comment of the rule against packets to loopback addresses from elsewhere. */
export const localnetComment = 'block incoming localnet connections';

/** Chains that only the kubelet makes, also where it writes no rule. */
export const kubeletChains: readonly string[] = [
  'KUBE-KUBELET-CANARY',
  'KUBE-IPTABLES-HINT',
  'KUBE-MARK-DROP',
];

/** Matches the names of chains that only kube-proxy writes, in tables that it shares with the kubelet and others. */
export const proxyChainNames = new RegExp(`^(?!(?:${[sharedChain, ...kubeletChains].join('|')})$)KUBE-`);

/** Who writes the rules with this comment in a chain of the kubelet; undefined for any other chain. */
export function kubeletOwnerOf(chain: string, comment: string | null): string | undefined {
  if (chain === sharedChain && comment === localnetComment) return 'the kubelet or kube-proxy';
  return chain === sharedChain || kubeletChains.includes(chain) ? 'the kubelet' : undefined;
}
