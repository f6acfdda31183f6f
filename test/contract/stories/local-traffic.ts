import {
  type Answers,
  type ExpectedPacket,
  type Fate,
  type ServiceSpec,
  type Setting,
  type Story,
  story,
} from '../story.ts';

const everywhere: ServiceSpec = { nodePort: true, external: true, loadBalancer: true, endpoints: ['A', 'B'] };
const local: ServiceSpec = { ...everywhere, externalPolicy: 'Local' };
const elsewhere: ServiceSpec = { ...local, endpoints: ['B'] };

/** One way to detect local traffic, and what it means for a remote pod. */
interface Detection {
  readonly setting: Setting;
  readonly name: string;
  readonly remote: 'OWN' | 'MASQ';
  readonly remoteAtLocalPolicy: Answers | Fate;
}

const detections: readonly Detection[] = [
  { setting: {}, name: 'NodeCIDR', remote: 'MASQ', remoteAtLocalPolicy: 'DROP' },
  {
    setting: { detectLocal: 'ClusterCIDR' },
    name: 'ClusterCIDR',
    remote: 'OWN',
    remoteAtLocalPolicy: { B: 'OWN' },
  },
  {
    setting: { detectLocal: 'BridgeInterface' },
    name: 'BridgeInterface',
    remote: 'MASQ',
    remoteAtLocalPolicy: 'DROP',
  },
  {
    setting: { detectLocal: 'InterfaceNamePrefix' },
    name: 'InterfaceNamePrefix',
    remote: 'MASQ',
    remoteAtLocalPolicy: 'DROP',
  },
];

function packetsFor({ remote, remoteAtLocalPolicy }: Detection): readonly ExpectedPacket[] {
  return [
    { from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } },
    { from: 'node', to: 'clusterIP', expect: { B: 'MASQ' } },
    { from: 'remote', to: 'clusterIP', expect: { B: remote } },
    { from: 'client', to: 'clusterIP', expect: { B: 'MASQ' } },
    ...(['nodePort', 'external', 'loadBalancer'] as const).flatMap((to): ExpectedPacket[] => [
      { from: 'pod', to, expect: { B: 'OWN' } },
      { from: 'node', to, expect: { B: 'MASQ' } },
      { from: 'remote', to, expect: remoteAtLocalPolicy },
      { from: 'client', to, expect: 'DROP' },
    ]),
  ];
}

const throughEverything = (expect: Answers): readonly ExpectedPacket[] =>
  (['nodePort', 'external', 'loadBalancer'] as const).map((to) => ({ from: 'A', to, expect }));

/**
 * A pod of another node asks for an endpoint beside it through this node. With ClusterCIDR all pods count as local and
 * keep their address: the endpoint answers directly, from an address that the client did not ask, and is not heard.
 */
const beside = (protocol: 'TCP' | 'UDP', state: 'ready' | 'draining') => ({
  given: {
    protocols: [protocol],
    nodePort: true,
    externalPolicy: 'Local' as const,
    endpoints: [{ at: 'D' as const, state }],
  },
  packets: [{ from: 'remote' as const, to: 'nodePort' as const, expect: 'DROP' as const }],
});

/** Detection of local traffic, and its effects. */
export const localTrafficStories: readonly Story[] = [
  ...detections.map((detection) =>
    story(
      `local/${detection.name}`,
      `${detection.name} detects local pods`,
      { given: elsewhere, packets: packetsFor(detection) },
      { setting: detection.setting },
    ),
  ),
  story(
    'local/beside the endpoint',
    'policy Local lets no pod of another node reach an endpoint there through this node',
    [beside('TCP', 'ready'), beside('TCP', 'draining'), beside('UDP', 'draining')],
    { setting: { detectLocal: 'ClusterCIDR', neighbours: true } },
  ),
  story(
    'local/prefix of all pods',
    'every pod on a device with the prefix is local',
    { given: everywhere, packets: [{ from: 'C', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } }] },
    { setting: { detectLocal: 'InterfaceNamePrefix' } },
  ),
  story(
    'local/one bridge',
    'a pod on another device than the bridge is not local',
    { given: everywhere, packets: [{ from: 'C', to: 'clusterIP', expect: { A: 'MASQ', B: 'MASQ' } }] },
    { setting: { detectLocal: 'BridgeInterface' } },
  ),
  story(
    'local/untold',
    'when local traffic cannot be detected, policy Local drops pods and policy Cluster masquerades them',
    [
      {
        given: elsewhere,
        packets: [
          { from: 'pod', to: 'nodePort', expect: 'DROP' },
          { from: 'node', to: 'nodePort', expect: { B: 'MASQ' } },
          { from: 'pod', to: 'clusterIP', expect: { B: 'OWN' } },
          { from: 'node', to: 'clusterIP', expect: { B: 'OWN' } },
        ],
      },
      {
        given: everywhere,
        packets: [
          { from: 'pod', to: 'nodePort', expect: { A: 'MASQ', B: 'MASQ' } },
          { from: 'A', to: 'clusterIP', expect: { A: 'MASQ', B: 'OWN' } },
        ],
      },
    ],
    { setting: { detectLocal: 'none' } },
  ),
  story(
    'masquerade all/external',
    'masqueradeAll applies to cluster IPs only',
    {
      given: local,
      packets: [
        { from: 'client', to: 'nodePort', expect: { A: 'OWN' } },
        { from: 'client', to: 'loadBalancer', expect: { A: 'OWN' } },
        { from: 'pod', to: 'external', expect: { A: 'OWN', B: 'OWN' } },
        { from: 'pod', to: 'clusterIP', expect: { A: 'MASQ', B: 'MASQ' } },
        { from: 'remote', to: 'clusterIP', expect: { A: 'MASQ', B: 'MASQ' } },
      ],
    },
    { setting: { masqueradeAll: true } },
  ),
  story(
    'masquerade all/udp',
    'masqueradeAll masquerades datagrams, also under internal policy Local',
    {
      given: { protocols: ['UDP'], internalPolicy: 'Local', endpoints: ['A', 'B'] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'MASQ' } }],
    },
    { setting: { masqueradeAll: true } },
  ),
  story('hairpin/udp', 'datagrams of a pod to itself are masqueraded', {
    given: { ...everywhere, protocols: ['UDP'] },
    packets: [{ from: 'A', to: 'clusterIP', expect: { A: 'MASQ', B: 'OWN' } }],
  }),
  story('hairpin/policy Local', 'a pod that reaches itself through an external address is masqueraded', {
    given: local,
    packets: throughEverything({ A: 'MASQ', B: 'OWN' }),
  }),
  story(
    'hairpin/policy Cluster',
    'a pod that reaches itself through policy Cluster is masqueraded like everybody else',
    {
      given: everywhere,
      packets: throughEverything({ A: 'MASQ', B: 'MASQ' }),
    },
  ),
  story(
    'hairpin/internal policy Local',
    'a pod that reaches itself under internal policy Local is masqueraded',
    {
      given: { internalPolicy: 'Local', endpoints: ['A', 'C', 'B'] },
      packets: [{ from: 'A', to: 'clusterIP', expect: { A: 'MASQ', C: 'OWN' } }],
    },
  ),
  story('hairpin/draining', 'a pod that drains can reach itself', {
    given: { endpoints: [{ at: 'A', state: 'draining' }] },
    packets: [{ from: 'A', to: 'clusterIP', expect: { A: 'MASQ' } }],
  }),
  story('hairpin/others', 'a pod that is not an endpoint of the service keeps its address', {
    given: { endpoints: ['A', 'C'] },
    packets: [
      { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', C: 'OWN' } },
      { from: 'C', to: 'clusterIP', expect: { A: 'OWN', C: 'MASQ' } },
    ],
  }),
  story('host network', 'a process of the node can be an endpoint', {
    given: { ...local, endpoints: ['node', 'B'] },
    packets: [
      { from: 'pod', to: 'clusterIP', expect: { node: 'OWN', B: 'OWN' } },
      { from: 'node', to: 'clusterIP', expect: { node: 'MASQ', B: 'MASQ' } },
      { from: 'client', to: 'nodePort', expect: { node: 'OWN' } },
      { from: 'client', to: 'loadBalancer', expect: { node: 'OWN' } },
    ],
  }),
];
