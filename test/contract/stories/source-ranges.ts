import { inIpvs, type ServiceSpec, type Story, scripted, story } from '../story.ts';

const guarded: ServiceSpec = {
  loadBalancer: true,
  nodePort: true,
  external: true,
  ranges: ['clients'],
  endpoints: ['A', 'B'],
};
const to = 'loadBalancer';
const everybody = { A: 'MASQ', B: 'MASQ' } as const;

/** Which clients may use a load balancer IP. */
export const sourceRangeStories: readonly Story[] = [
  story('ranges/udp', 'source ranges apply to UDP', {
    given: { ...guarded, protocols: ['UDP'] },
    packets: [
      { from: 'client', to, expect: everybody },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: everybody },
    ],
  }),
  story('ranges/other addresses', 'source ranges do not apply to cluster IP, external IP and node port', {
    given: guarded,
    packets: [
      { from: 'stranger', to: 'external', expect: everybody },
      { from: 'stranger', to: 'nodePort', expect: everybody },
      { from: 'stranger', to: 'clusterIP', expect: everybody },
      { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
    ],
  }),
  story('ranges/policy Local', 'policy Local serves allowed sources and keeps their address', {
    given: { ...guarded, externalPolicy: 'Local' },
    packets: [
      { from: 'client', to, expect: { A: 'OWN' } },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: { A: 'OWN' } },
      { from: 'pod', to, expect: 'DROP' },
    ],
  }),
  story('ranges/pods', 'source ranges may allow pods', {
    given: { ...guarded, ranges: ['pods'] },
    packets: [
      { from: 'pod', to, expect: everybody },
      { from: 'client', to, expect: 'DROP' },
      { from: 'remote', to, expect: 'DROP' },
      // ipvs mode applies the ranges to the node only if it sends from the load balancer IP (C32).
      { from: 'node', to, expect: 'DROP', ...inIpvs(everybody) },
    ],
  }),
  scripted('ranges/nodes', 'source ranges may allow the node', async (scene) => {
    await scene.apply({ ...guarded, ranges: ['nodes'] });
    await scene.expect(
      { from: 'node', to, source: scene.book.node, expect: everybody },
      { from: 'client', to, expect: 'DROP' },
    );
  }),
  story('ranges/several', 'several source ranges allow all of their sources', {
    given: { ...guarded, ranges: ['clients', 'some tenants'] },
    packets: [
      { from: 'client', to, expect: everybody },
      { from: 'tenant', to, expect: everybody },
      { from: 'stranger', to, expect: 'DROP' },
    ],
  }),
  story(
    'ranges/policy Local elsewhere',
    'an allowed source is dropped when policy Local has no endpoint on this node',
    {
      given: { ...guarded, externalPolicy: 'Local', ranges: ['clients', 'pods'], endpoints: ['B'] },
      packets: [
        { from: 'client', to, expect: 'DROP', ...inIpvs({ B: 'OWN' }) },
        { from: 'pod', to, expect: { B: 'OWN' } },
      ],
    },
  ),
  story('ranges/both protocols', 'source ranges apply to every port of the service', {
    given: { ...guarded, protocols: ['TCP', 'UDP'] },
    packets: (['tcp', 'udp'] as const).flatMap((transport) => [
      { from: 'client', to, transport, expect: everybody } as const,
      { from: 'stranger', to, transport, expect: 'DROP' } as const,
    ]),
  }),
  story('ranges/change', 'source ranges can be added, changed and removed', [
    {
      given: { ...guarded, ranges: [] },
      packets: [
        { from: 'client', to, expect: everybody },
        { from: 'stranger', to, expect: everybody },
      ],
    },
    {
      given: guarded,
      packets: [
        { from: 'client', to, expect: everybody },
        { from: 'stranger', to, expect: 'DROP' },
      ],
    },
    {
      given: { ...guarded, ranges: ['some tenants'] },
      packets: [
        { from: 'client', to, expect: 'DROP' },
        { from: 'tenant', to, expect: everybody },
      ],
    },
    {
      given: { ...guarded, ranges: ['tenants'] },
      packets: [{ from: 'tenant', to, expect: everybody }],
    },
    {
      given: { ...guarded, ranges: [] },
      packets: [{ from: 'stranger', to, expect: everybody }],
    },
  ]),
  story('ranges/affinity', 'affinity and source ranges work together', {
    given: { ...guarded, affinitySeconds: 60, endpoints: ['A'] },
    packets: [
      { from: 'client', to, expect: { A: 'MASQ' } },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: { A: 'MASQ' } },
    ],
  }),
];
