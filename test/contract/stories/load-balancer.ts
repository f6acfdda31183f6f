import { sctpUnavailable } from '../../cluster/lab/sctp.ts';
import { runInNode } from '../node-commands.ts';
import { IGNORE, inIptables, type ServiceSpec, type Story, scripted, story } from '../story.ts';

const balanced: ServiceSpec = {
  loadBalancer: true,
  port: 443,
  externalPolicy: 'Local',
  endpoints: [{ at: 'A', state: 'draining' }, 'B'],
};
const guarded: ServiceSpec = { loadBalancer: true, nodePort: true, ranges: ['clients'], endpoints: ['A'] };
const to = 'loadBalancer';

export const loadBalancerStories: readonly Story[] = [
  story(
    'C27',
    'a draining endpoint on this node serves outside clients while a ready one elsewhere serves the cluster',
    {
      given: balanced,
      packets: [
        { from: 'client', to, expect: { A: 'OWN' } },
        { from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } },
      ],
    },
  ),
  story('C28', 'when all endpoints drain, all of them serve', {
    given: {
      ...balanced,
      endpoints: [
        { at: 'A', state: 'draining' },
        { at: 'B', state: 'draining' },
      ],
    },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } }],
  }),
  story('C29', 'endpoints that terminate and do not serve do not count as endpoints', {
    given: {
      ...balanced,
      endpoints: [
        { at: 'A', state: 'gone' },
        { at: 'B', state: 'gone' },
      ],
    },
    packets: [
      { from: 'client', to, expect: 'REJECT' },
      { from: 'pod', to: 'clusterIP', expect: 'REJECT' },
    ],
  }),
  story('C30', 'source ranges restrict the load balancer IP, but not node ports', {
    given: guarded,
    packets: [
      { from: 'client', to, expect: { A: 'MASQ' } },
      { from: 'stranger', to, expect: 'DROP' },
      { from: 'stranger', to: 'nodePort', expect: { A: 'MASQ' } },
    ],
  }),
  story('C31', 'pods are not exempt from source ranges', {
    given: guarded,
    packets: [{ from: 'pod', to, expect: 'DROP' }],
  }),
  scripted('C32', 'a node in the source ranges may connect from the load balancer IP', async (scene) => {
    await scene.apply({ ...guarded, ranges: ['nodes'] });
    const source = scene.address(to, scene.service().n);
    // Deprecated, so that the kernel never chooses this address for masquerading.
    const nodad = source.includes(':') ? ['nodad'] : [];
    await runInNode('ip', 'addr', 'add', source, 'dev', 'lo', 'preferred_lft', '0', ...nodad);
    try {
      await scene.expect({ from: 'node', to, source, expect: { A: 'MASQ' } });
      await scene.apply(guarded);
      await scene.expect({ from: 'node', to, source, expect: 'DROP' });
    } finally {
      await runInNode('ip', 'addr', 'del', source, 'dev', 'lo');
    }
  }),
  story('C33', 'without endpoints, sources outside the ranges are dropped, not rejected', {
    given: { ...guarded, endpoints: [] },
    packets: [
      { from: 'client', to, expect: 'REJECT' },
      // Without endpoints iptables mode has no chain for the ranges either.
      { from: 'stranger', to, expect: 'DROP', ...inIptables('REJECT') },
    ],
  }),
  scripted(
    'C34',
    'source ranges of one family do not restrict the other family',
    async (scene) => {
      await scene.apply({ ...guarded, rangeFamilies: ['IPv6'] });
      await scene.expect({ from: 'stranger', to, expect: { A: 'MASQ' } });
      await scene.otherFamily.expect(
        { from: 'stranger', to, expect: 'DROP' },
        { from: 'client', to, expect: { A: 'MASQ' } },
      );
    },
    { families: ['IPv4'], dualStackOnly: true },
  ),
  story('C35', 'source ranges may overlap, repeat or allow everyone', [
    {
      given: { ...guarded, ranges: ['everyone', 'clients'] },
      packets: [{ from: 'stranger', to, expect: { A: 'MASQ' } }],
    },
    {
      given: { ...guarded, ranges: ['tenants', 'some tenants', 'some tenants'] },
      packets: [
        { from: 'tenant', to, expect: { A: 'MASQ' } },
        { from: 'stranger', to, expect: 'DROP' },
      ],
    },
  ]),
  story('C36', 'a load balancer IP with ipMode Proxy is left alone', {
    given: { ...guarded, loadBalancer: 'Proxy', endpoints: ['A'] },
    packets: [
      { from: 'pod', to, expect: IGNORE },
      { from: 'stranger', to: 'nodePort', expect: { A: 'MASQ' } },
    ],
  }),
  story(
    'C37',
    'an SCTP external IP captures only its own port',
    {
      given: { external: true, protocols: ['SCTP'], endpoints: ['A'] },
      packets: [
        { from: 'pod', to: 'external', expect: { A: 'MASQ' } },
        { from: 'pod', to: 'external', transport: 'tcp', expect: IGNORE },
      ],
    },
    { unavailable: sctpUnavailable() },
  ),
];
