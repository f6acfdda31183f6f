import type { Packet, ServiceSpec } from './story.ts';

/** A service with every kind of address, for tests of a program in operation. */
export const web: ServiceSpec = {
  nodePort: true,
  external: true,
  loadBalancer: true,
  endpoints: ['A', 'B'],
};

/** Packets from a pod, from the node and from outside. */
export const everyWayIn: readonly Packet[] = [
  { from: 'pod', to: 'clusterIP' },
  { from: 'client', to: 'nodePort' },
  { from: 'client', to: 'loadBalancer' },
  { from: 'node', to: 'clusterIP' },
];

/** Both endpoints answer, and see the client's address or one of the node's. */
export const own = { A: 'OWN', B: 'OWN' } as const;
export const masqueraded = { A: 'MASQ', B: 'MASQ' } as const;
