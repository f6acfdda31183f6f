import { sctpUnavailable } from '../../cluster/lab/sctp.ts';
import { atEveryAddress, type ServiceSpec, type Setting, type Story, story } from '../story.ts';

const web: ServiceSpec = { nodePort: true, endpoints: ['A', 'B'] };
const local: ServiceSpec = { ...web, externalPolicy: 'Local' };
const elsewhere: ServiceSpec = { ...local, endpoints: ['B'] };
const to = 'nodePort';

const everyAddressServes = atEveryAddress({ A: 'MASQ', B: 'MASQ' });
const everyAddress: Setting = { nodePortAddresses: ['0.0.0.0/0', '::/0'] };

export const nodePortStories: readonly Story[] = [
  story('C15', 'policy Cluster masquerades a client outside', {
    given: web,
    packets: [{ from: 'client', to, expect: { A: 'MASQ', B: 'MASQ' } }],
  }),
  story('C16', 'policy Cluster masquerades a local pod', {
    given: web,
    packets: [{ from: 'pod', to, expect: { A: 'MASQ', B: 'MASQ' } }],
  }),
  story('C17', 'other addresses of the node do not serve node ports', {
    given: web,
    packets: [
      { from: 'client', to: 'second', expect: 'RESET', ...everyAddressServes },
      { from: 'node', to: 'second', expect: 'RESET', ...everyAddressServes },
    ],
  }),
  story(
    'C17 with all addresses',
    'every address of the node serves node ports when all addresses are configured',
    {
      given: web,
      packets: [
        { from: 'client', to: 'second', expect: { A: 'MASQ', B: 'MASQ' } },
        { from: 'pod', to: 'second', expect: { A: 'MASQ', B: 'MASQ' } },
        { from: 'node', to: 'second', expect: { A: 'MASQ', B: 'MASQ' } },
        { from: 'client', to, expect: { A: 'MASQ', B: 'MASQ' } },
      ],
    },
    { setting: everyAddress },
  ),
  story(
    'C18',
    'an SCTP node port is served',
    {
      given: { ...web, protocols: ['SCTP'] },
      packets: [{ from: 'client', to, expect: { A: 'MASQ', B: 'MASQ' } }],
    },
    { unavailable: sctpUnavailable() },
  ),
  story(
    'C19',
    'every address serves node ports in a family in which the Node object has no address',
    {
      given: { ...web, endpoints: ['A'] },
      packets: [
        { from: 'client', to: 'second', expect: { A: 'MASQ' } },
        { from: 'client', to, expect: { A: 'MASQ' } },
      ],
    },
    { setting: { nodeFamilies: ['IPv4'] }, families: ['IPv6'], dualStackOnly: true },
  ),
  story('C20', 'a node port without endpoints is rejected', {
    given: { ...web, endpoints: [] },
    packets: [
      { from: 'client', to, expect: 'REJECT' },
      { from: 'node', to, expect: 'REJECT' },
      { from: 'pod', to, expect: 'REJECT' },
    ],
  }),
  story('C21', 'policy Local sends outside clients to endpoints of this node and keeps their address', {
    given: local,
    packets: [{ from: 'client', to, expect: { A: 'OWN' } }],
  }),
  story('C22', 'policy Local sends local pods to endpoints of every node', {
    given: local,
    packets: [{ from: 'pod', to, expect: { A: 'OWN', B: 'OWN' } }],
  }),
  story('C23', 'policy Local without an endpoint on this node drops outside clients', {
    given: elsewhere,
    packets: [{ from: 'client', to, expect: 'DROP' }],
  }),
  story('C24', 'policy Local without an endpoint on this node serves local pods and processes of the node', {
    given: elsewhere,
    packets: [
      { from: 'pod', to, expect: { B: 'OWN' } },
      { from: 'node', to, expect: { B: 'MASQ' } },
    ],
  }),
  story('C25', 'policy Local treats a pod of another node as an outside client', {
    given: elsewhere,
    packets: [{ from: 'remote', to, expect: 'DROP' }],
  }),
  story(
    'C25 with ClusterCIDR',
    'policy Local treats a pod of another node as local when all pods count as local',
    { given: elsewhere, packets: [{ from: 'remote', to, expect: { B: 'OWN' } }] },
    { setting: { detectLocal: 'ClusterCIDR' } },
  ),
  story(
    'C26',
    'policy Local treats a local pod as an outside client when local traffic cannot be detected',
    {
      given: local,
      packets: [
        { from: 'pod', to, expect: { A: 'OWN' } },
        { from: 'node', to, expect: { A: 'MASQ', B: 'MASQ' } },
      ],
    },
    { setting: { detectLocal: 'none' } },
  ),
];
