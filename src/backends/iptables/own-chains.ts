import type { AnyTable } from '../../kernel/iptables/commands.ts';
import { canaryChain } from './canary.ts';
import { isServiceChain } from './names.ts';

/** KUBE-FIREWALL is not among them: the kubelet uses it, too. localnet-leftovers.ts decides about it. */
const fixedChains: Readonly<Record<AnyTable, readonly string[]>> = {
  nat: ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ', canaryChain],
  filter: [
    'KUBE-SERVICES',
    'KUBE-EXTERNAL-SERVICES',
    'KUBE-FORWARD',
    'KUBE-NODEPORTS',
    'KUBE-PROXY-FIREWALL',
    canaryChain,
  ],
  mangle: [canaryChain],
};

/** Releases before 1.24 had such chains, which lead to those of services and so would hold on to them. */
const retiredPrefix = 'KUBE-XLB-';

/** Whether a chain is of this mode alone, here or upstream. */
export function isOwnChain(table: AnyTable, chain: string): boolean {
  if (fixedChains[table].includes(chain)) return true;
  return table === 'nat' && (isServiceChain(chain) || chain.startsWith(retiredPrefix));
}
