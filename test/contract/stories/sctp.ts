import { sctpUnavailable } from '../../cluster/lab/sctp.ts';
import { type ServiceSpec, type Story, scripted, type Target } from '../story.ts';

const exposed: ServiceSpec = {
  protocols: ['SCTP'],
  nodePort: true,
  external: true,
  loadBalancer: true,
  endpoints: ['A', 'B'],
};
const local: ServiceSpec = { ...exposed, internalPolicy: 'Local', externalPolicy: 'Local' };
const everyAddress: readonly Target[] = ['clusterIP', 'nodePort', 'external', 'loadBalancer'];
const externalAddresses = everyAddress.filter((to) => to !== 'clusterIP');

const everybody = { A: 'MASQ', B: 'MASQ' } as const;

/** The rules that other stories test with TCP and UDP, for SCTP. */
export const sctpStories: readonly Story[] = [
  sctp(
    'sctp/policy Cluster',
    'SCTP under policy Cluster reaches every endpoint at every address',
    async (scene) => {
      await scene.apply(exposed);
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
        { from: 'node', to: 'clusterIP', expect: everybody },
        { from: 'client', to: 'clusterIP', expect: everybody },
        ...externalAddresses.flatMap((to) => [
          { from: 'pod', to, expect: everybody } as const,
          { from: 'node', to, expect: everybody } as const,
          { from: 'client', to, expect: everybody } as const,
        ]),
      );
    },
  ),
  sctp(
    'sctp/policy Local',
    'SCTP under policy Local sends outside clients to endpoints on this node and keeps their address',
    async (scene) => {
      await scene.apply(local);
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } },
        ...externalAddresses.flatMap((to) => [
          { from: 'pod', to, expect: { A: 'OWN', B: 'OWN' } } as const,
          { from: 'client', to, expect: { A: 'OWN' } } as const,
        ]),
      );
    },
  ),
  sctp(
    'sctp/policy Local elsewhere',
    'SCTP under policy Local without an endpoint on this node drops outside clients',
    async (scene) => {
      await scene.apply({ ...local, endpoints: ['B'] });
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: 'DROP' },
        ...externalAddresses.map((to) => ({ from: 'client', to, expect: 'DROP' }) as const),
      );
    },
  ),
  sctp('sctp/no endpoints', 'SCTP without endpoints is rejected at every address', async (scene) => {
    await scene.apply({ ...exposed, endpoints: [] });
    await scene.expect(
      ...everyAddress.flatMap((to) => [
        { from: 'pod', to, expect: 'REJECT' } as const,
        { from: 'node', to, expect: 'REJECT' } as const,
        { from: 'client', to, expect: 'REJECT' } as const,
      ]),
    );
  }),
  sctp('sctp/ranges', 'source ranges restrict the load balancer IP for SCTP', async (scene) => {
    await scene.apply({ ...exposed, ranges: ['clients'] });
    await scene.expect(
      { from: 'client', to: 'loadBalancer', expect: everybody },
      { from: 'stranger', to: 'loadBalancer', expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: everybody },
    );
  }),
  sctp(
    'sctp/affinity',
    'an SCTP client with affinity stays with its endpoint at every address',
    async (scene) => {
      const sticky: ServiceSpec = { ...exposed, affinitySeconds: 600 };
      await scene.apply({ ...sticky, endpoints: ['A'] });
      await scene.expect({ from: 'client', to: 'clusterIP', expect: { A: 'MASQ' } });
      await scene.apply(sticky);
      await scene.expect(
        ...everyAddress.map((to) => ({ from: 'client', to, expect: { A: 'MASQ' } }) as const),
      );
      await scene.apply({ ...sticky, endpoints: ['B'] });
      await scene.expect({ from: 'client', to: 'clusterIP', expect: { B: 'MASQ' } });
    },
  ),
  sctp(
    'sctp/all protocols',
    'TCP, UDP and SCTP ports of a service reach the same endpoints',
    async (scene) => {
      await scene.apply({ ...exposed, protocols: ['TCP', 'UDP', 'SCTP'] });
      await scene.expect(
        ...(['tcp', 'udp', 'sctp'] as const).flatMap((transport) =>
          (['clusterIP', 'nodePort'] as const).map(
            (to) => ({ from: 'client', to, transport, expect: everybody }) as const,
          ),
        ),
      );
    },
  ),
];

function sctp(id: string, title: string, run: Story['run']): Story {
  return scripted(id, title, run, { unavailable: sctpUnavailable() });
}
