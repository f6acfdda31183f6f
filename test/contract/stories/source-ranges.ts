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

/** Who may use a balancer's address. */
export const sourceRangeStories: readonly Story[] = [
  story('ranges/udp', 'datagrams are guarded as well', {
    given: { ...guarded, protocols: ['UDP'] },
    packets: [
      { from: 'client', to, expect: everybody },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: everybody },
    ],
  }),
  story('ranges/other addresses', 'cluster IP, external IP and node port are not guarded', {
    given: guarded,
    packets: [
      { from: 'stranger', to: 'external', expect: everybody },
      { from: 'stranger', to: 'nodePort', expect: everybody },
      { from: 'stranger', to: 'clusterIP', expect: everybody },
      { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
    ],
  }),
  story('ranges/policy Local', 'policy Local serves those who are allowed, with their own address', {
    given: { ...guarded, externalPolicy: 'Local' },
    packets: [
      { from: 'client', to, expect: { A: 'OWN' } },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: { A: 'OWN' } },
      { from: 'pod', to, expect: 'DROP' },
    ],
  }),
  story('ranges/pods', 'pods may be allowed', {
    given: { ...guarded, ranges: ['pods'] },
    packets: [
      { from: 'pod', to, expect: everybody },
      { from: 'client', to, expect: 'DROP' },
      { from: 'remote', to, expect: 'DROP' },
      // ipvs mode guards against the node only as far as it sends from the balancer's address (C32).
      { from: 'node', to, expect: 'DROP', ...inIpvs(everybody) },
    ],
  }),
  scripted('ranges/nodes', 'the node may be allowed', async (scene) => {
    await scene.apply({ ...guarded, ranges: ['nodes'] });
    await scene.expect(
      { from: 'node', to, source: scene.book.node, expect: everybody },
      { from: 'client', to, expect: 'DROP' },
    );
  }),
  story('ranges/several', 'several ranges allow all their sources', {
    given: { ...guarded, ranges: ['clients', 'some tenants'] },
    packets: [
      { from: 'client', to, expect: everybody },
      { from: 'tenant', to, expect: everybody },
      { from: 'stranger', to, expect: 'DROP' },
    ],
  }),
  story('ranges/policy Local elsewhere', 'what is allowed is dropped for want of an endpoint here', {
    given: { ...guarded, externalPolicy: 'Local', ranges: ['clients', 'pods'], endpoints: ['B'] },
    packets: [
      { from: 'client', to, expect: 'DROP', ...inIpvs({ B: 'OWN' }) },
      { from: 'pod', to, expect: { B: 'OWN' } },
    ],
  }),
  story('ranges/both protocols', 'every port of the service is guarded', {
    given: { ...guarded, protocols: ['TCP', 'UDP'] },
    packets: (['tcp', 'udp'] as const).flatMap((transport) => [
      { from: 'client', to, transport, expect: everybody } as const,
      { from: 'stranger', to, transport, expect: 'DROP' } as const,
    ]),
  }),
  story('ranges/change', 'ranges come, change and go', [
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
  story('ranges/affinity', 'affinity and ranges together', {
    given: { ...guarded, affinitySeconds: 60, endpoints: ['A'] },
    packets: [
      { from: 'client', to, expect: { A: 'MASQ' } },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: { A: 'MASQ' } },
    ],
  }),
];
