import type { ServiceSpec } from '../contract/story.ts';

const everywhere = { nodePort: true, external: true, loadBalancer: true } as const;
const protocols = ['TCP', 'UDP'] as const;

/** Services with all properties that decide about packets. Each has a TCP and a UDP port. */
export const services: readonly ServiceSpec[] = [
  { endpoints: ['A', 'B'] },
  { ...everywhere, endpoints: ['A', 'B', 'C', 'D'] },
  { ...everywhere, endpoints: ['A'] },
  { ...everywhere, endpoints: ['B', 'node'] },
  { port: 81, ...everywhere, endpoints: ['C', 'D'] },
  { internalPolicy: 'Local', endpoints: ['A', 'B'] },
  { internalPolicy: 'Local', endpoints: ['B', 'D'] },
  { ...everywhere, internalPolicy: 'Local', endpoints: ['B'] },
  { ...everywhere, externalPolicy: 'Local', endpoints: ['A', 'B', 'C'] },
  { ...everywhere, externalPolicy: 'Local', endpoints: ['B', 'D'] },
  { ...everywhere, externalPolicy: 'Local', internalPolicy: 'Local', endpoints: ['C', 'D'] },
  { ...everywhere, externalPolicy: 'Local', endpoints: [{ at: 'A', state: 'draining' }, 'B'] },
  { ...everywhere, externalPolicy: 'Local', endpoints: ['node', 'B'] },
  { ...everywhere, externalPolicy: 'Local', endpoints: [] },
  { ...everywhere, endpoints: [] },
  {
    ...everywhere,
    endpoints: [
      { at: 'A', state: 'unready' },
      { at: 'B', state: 'gone' },
    ],
  },
  {
    ...everywhere,
    endpoints: [
      { at: 'A', state: 'draining' },
      { at: 'B', state: 'draining' },
      { at: 'C', state: 'gone' },
    ],
  },
  { ...everywhere, ranges: ['clients'], endpoints: ['A', 'B'] },
  { ...everywhere, ranges: ['nodes', 'pods'], endpoints: ['A', 'B'] },
  { ...everywhere, ranges: ['tenants', 'some tenants'], externalPolicy: 'Local', endpoints: ['A', 'B'] },
  { ...everywhere, ranges: ['clients'], externalPolicy: 'Local', endpoints: ['B'] },
  { ...everywhere, ranges: ['clients'], endpoints: [] },
  { affinitySeconds: 600, endpoints: ['A', 'B', 'C'] },
  { ...everywhere, affinitySeconds: 600, externalPolicy: 'Local', endpoints: ['A', 'B', 'C'] },
  { ...everywhere, annotations: { 'kube-proxy-ts.dev/balance': 'hash' }, endpoints: ['A', 'B', 'C'] },
  {
    ...everywhere,
    annotations: { 'kube-proxy-ts.dev/balance': 'hash-client' },
    externalPolicy: 'Local',
    endpoints: ['A', 'B', 'C'],
  },
  { ...everywhere, loadBalancer: 'Proxy', endpoints: ['A', 'B'] },
  {
    endpoints: [
      { at: 'A', zoneHints: ['zone-a'] },
      { at: 'B', zoneHints: ['zone-b'] },
    ],
  },
  { families: ['IPv4'], ...everywhere, endpoints: ['A', 'B'] },
  { families: ['IPv6'], ...everywhere, endpoints: ['A', 'B'] },
].map((spec) => ({ protocols, ...spec }) as ServiceSpec);
