/** Addresses of the cluster. All of them exist only in its namespaces. */
export const nodes = [1, 2, 3] as const;

/** The control plane, which also is the switch and the default route of the nodes. */
export const controlPlane = { v4: '172.31.255.1', v6: 'fd00:31:255::1' };
export const nodeNetwork = { v4: '172.31.255.0/24', v6: 'fd00:31:255::/64' };
/** A client from outside the nodes' subnet, in the namespace of the control plane. */
export const outsideClient = '172.30.0.1';
/** Addresses of load balancers. Those without one lead to a neighbour that does not exist: no answer, no error. */
export const loadBalancers = { network: '172.31.254.0/24', prefix: '172.31.254', nobody: '172.31.255.254' };

export const apiServer = `https://${controlPlane.v4}:6443`;
export const podNetwork = '10.244.0.0/16,fd00:10:244::/48';
export const serviceNetwork = '10.96.0.0/16,fd00:10:96::/112';
export const firstServiceAddresses = ['10.96.0.1', 'fd00:10:96::1'];
export const dnsService = '10.96.0.10';

export function nodeAddress(node: number): { readonly v4: string; readonly v6: string } {
  return { v4: `172.31.255.${10 + node}`, v6: `fd00:31:255::${10 + node}` };
}

/** Where the pods of a node have their addresses from. */
export function podRange(node: number): { readonly v4: string; readonly v6: string } {
  return { v4: `10.244.${node}.0/24`, v6: `fd00:10:244:${node}::/64` };
}
