/**
 * Node ports on loopback addresses need a kernel parameter, and KUBE-FIREWALL a rule, so that other machines cannot reach
 * what listens on loopback only. docs/decisions/0006-localnet.md says what of this a clean-up removes.
 */

export const localnetSysctl = 'net/ipv4/conf/all/route_localnet';

/** The comment of the rule, also in upstream and in the kubelet. */
export const localnetComment = 'block incoming localnet connections';

/**
 * An empty chain of mangle, which nothing leads to: this program changed the parameter from 0 to 1. Like the parameter it
 * belongs to the network namespace and is gone after a boot.
 */
export const localnetMark = 'KUBE-PROXY-LOCALNET';
