import { type Place, verdict } from '../decision-table.ts';
import type { EndpointSpec, ExpectedPacket, ServiceSpec, Source, Story, Target } from '../story.ts';
import { IGNORE, inIptables, story } from '../story.ts';

/** A state of the endpoints, and which of them then serve under policy Cluster and under policy Local. */
interface EndpointState {
  readonly name: string;
  readonly endpoints: readonly (Place | EndpointSpec)[];
  readonly cluster: readonly Place[];
  readonly local: readonly Place[];
}

const draining = (at: Place): EndpointSpec => ({ at, state: 'draining' });
const unready = (at: Place): EndpointSpec => ({ at, state: 'unready' });
const gone = (at: Place): EndpointSpec => ({ at, state: 'gone' });

const states: readonly EndpointState[] = [
  { name: 'ready here and elsewhere', endpoints: ['A', 'B'], cluster: ['A', 'B'], local: ['A'] },
  { name: 'ready here', endpoints: ['A'], cluster: ['A'], local: ['A'] },
  { name: 'ready elsewhere', endpoints: ['B'], cluster: ['B'], local: [] },
  { name: 'none', endpoints: [], cluster: [], local: [] },
  { name: 'draining here, ready elsewhere', endpoints: [draining('A'), 'B'], cluster: ['B'], local: ['A'] },
  { name: 'ready here, draining elsewhere', endpoints: ['A', draining('B')], cluster: ['A'], local: ['A'] },
  {
    name: 'draining here and elsewhere',
    endpoints: [draining('A'), draining('B')],
    cluster: ['A', 'B'],
    local: ['A'],
  },
  { name: 'draining elsewhere', endpoints: [draining('B')], cluster: ['B'], local: [] },
  { name: 'unready here, ready elsewhere', endpoints: [unready('A'), 'B'], cluster: ['B'], local: [] },
  { name: 'ready and draining here', endpoints: ['A', draining('C')], cluster: ['A'], local: ['A'] },
  { name: 'unready and gone', endpoints: [unready('A'), gone('B')], cluster: [], local: [] },
  {
    name: 'two here, two elsewhere',
    endpoints: ['A', 'B', 'C', 'D'],
    cluster: ['A', 'B', 'C', 'D'],
    local: ['A', 'C'],
  },
];

const policies = [
  { name: 'Cluster', spec: {} },
  { name: 'Local', spec: { internalPolicy: 'Local', externalPolicy: 'Local' } },
  { name: 'internal Local', spec: { internalPolicy: 'Local' } },
  { name: 'external Local', spec: { externalPolicy: 'Local' } },
] as const;

const protocols = ['TCP', 'UDP'] as const;
const sources: readonly Source[] = ['pod', 'node', 'remote', 'client'];
const targets: readonly Target[] = ['clusterIP', 'nodePort', 'external', 'loadBalancer'];

/**
 * iptables mode ignores packets of the node itself to external addresses without endpoints. They go to the world, which
 * answers TCP and rejects UDP.
 */
function unrejected(from: Source, to: Target): Pick<ExpectedPacket, 'differs'> {
  return from === 'node' && (to === 'external' || to === 'loadBalancer') ? inIptables(IGNORE) : {};
}

/** Every kind of address × source × policy × state of the endpoints, over TCP and UDP. */
export const policyTableStories: readonly Story[] = protocols.flatMap((protocol) =>
  policies.flatMap((policy) =>
    states.map((state) => {
      const given: ServiceSpec = {
        ...policy.spec,
        protocols: [protocol],
        nodePort: true,
        external: true,
        loadBalancer: true,
        endpoints: state.endpoints,
      };
      const packets = targets.flatMap((to) =>
        sources.map((from): ExpectedPacket => {
          const expect = verdict(from, to, given, state);
          return { from, to, expect, ...(protocol === 'TCP' && expect === 'REJECT' && unrejected(from, to)) };
        }),
      );
      return story(
        `table/${protocol}/${policy.name}/${state.name}`,
        `every source to every address, ${protocol}, policy ${policy.name}, endpoints ${state.name}`,
        { given, packets },
      );
    }),
  ),
);
