import { zones } from '../objects.ts';
import { type EndpointSpec, type ServiceSpec, type Story, scripted, story } from '../story.ts';

const hinted = (at: EndpointSpec['at'], ...zoneHints: string[]): EndpointSpec => ({ at, zoneHints });

/** The endpoint on this node is hinted for the other zone, the one elsewhere for this zone. */
const crossed: readonly EndpointSpec[] = [hinted('A', zones.there), hinted('B', zones.here)];
const web: ServiceSpec = { nodePort: true, loadBalancer: true, endpoints: crossed };

/** Endpoints with hints for zones or nodes. */
export const topologyStories: readonly Story[] = [
  story('C51', 'hints narrow the list of cluster endpoints, never that of local endpoints', {
    given: { ...web, externalPolicy: 'Local' },
    packets: [
      { from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } },
      { from: 'client', to: 'nodePort', expect: { A: 'OWN' } },
      { from: 'client', to: 'loadBalancer', expect: { A: 'OWN' } },
      { from: 'pod', to: 'nodePort', expect: { B: 'OWN' } },
    ],
  }),
  story('topology/policy Cluster', 'external addresses of policy Cluster follow hints', {
    given: web,
    packets: [
      { from: 'client', to: 'nodePort', expect: { B: 'MASQ' } },
      { from: 'client', to: 'loadBalancer', expect: { B: 'MASQ' } },
      { from: 'node', to: 'clusterIP', expect: { B: 'MASQ' } },
    ],
  }),
  story('topology/several zones', 'an endpoint may be hinted for several zones', {
    given: {
      endpoints: [hinted('A', zones.there, zones.here), hinted('B', zones.here), hinted('D', zones.there)],
    },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } }],
  }),
  story('topology/incomplete', 'hints count only when every endpoint has them', {
    given: { endpoints: [...crossed, 'D'] },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN', D: 'OWN' } }],
  }),
  story('topology/not for us', 'hints count only when an endpoint is hinted for this zone', {
    given: { endpoints: [hinted('A', zones.there), hinted('B', zones.there)] },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } }],
  }),
  story('topology/unready', 'an endpoint that is not ready does not count for hints', {
    given: { endpoints: [hinted('A', zones.there), { ...hinted('B', zones.here), state: 'unready' }] },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } }],
  }),
  story('topology/draining', 'draining endpoints ignore hints and serve when no endpoint is ready', {
    given: { endpoints: crossed.map((endpoint) => ({ ...endpoint, state: 'draining' as const })) },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } }],
  }),
  story('topology/same node', 'hints for nodes come before hints for zones', {
    given: {
      distribution: 'PreferSameNode',
      endpoints: [
        { ...hinted('A', zones.here), nodeHints: ['n1'] },
        { ...hinted('C', zones.here), nodeHints: ['n3'] },
        { ...hinted('B', zones.here), nodeHints: ['n2'] },
      ],
    },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } }],
  }),
  story('topology/other nodes', 'when node hints name only other nodes, zone hints decide', {
    given: {
      distribution: 'PreferSameNode',
      endpoints: [
        { ...hinted('A', zones.here), nodeHints: ['n2'] },
        { ...hinted('B', zones.there), nodeHints: ['n2'] },
      ],
    },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } }],
  }),
  story('topology/change', 'a change of hints takes effect', [
    { given: web, packets: [{ from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } }] },
    {
      given: { ...web, endpoints: [hinted('A', zones.here), hinted('B', zones.there)] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } }],
    },
    {
      given: { ...web, endpoints: ['A', 'B'] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } }],
    },
  ]),
  scripted(
    'topology/moved node',
    'a node that changes its zone uses the endpoints of the new one',
    async (scene) => {
      await scene.apply(web);
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } });
      try {
        scene.cluster.changeNode({ zone: zones.there });
        await scene.eventually({ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } });
        // New endpoints may be added before old ones are removed.
        await scene.cluster.settled();
        await scene.expect({ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } });
      } finally {
        scene.cluster.changeNode({ zone: zones.here });
      }
      await scene.eventually({ from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } });
    },
    { alone: true },
  ),
];
