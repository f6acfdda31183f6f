import assert from 'node:assert/strict';
import { hasProgram } from '../../cluster/lab/namespace.ts';
import {
  IGNORE,
  inIptables,
  type ServiceSpec,
  type Story,
  scripted,
  story,
  withoutServiceNetwork,
} from '../story.ts';

const web: ServiceSpec = { endpoints: ['A', 'B'] };
const dns: ServiceSpec = { protocols: ['UDP'], port: 53, internalPolicy: 'Local', endpoints: ['A', 'B'] };
const toWeb = { to: 'clusterIP' } as const;
/** iptables mode captures only the ports of services. */
const leftAlone = inIptables(IGNORE);
/** Modes without a service network leave unused addresses alone. */
const unclaimed = withoutServiceNetwork(IGNORE);

/** With this many draws, chance misses a quarter by a tenth only once in ten million times. */
const EVEN_DRAWS = 600;
const DRAWS_AT_ONCE = 10;

export const clusterIPStories: readonly Story[] = [
  story('C1', 'a pod of this node reaches every endpoint and keeps its address', {
    given: web,
    packets: [{ from: 'pod', ...toWeb, expect: { A: 'OWN', B: 'OWN' } }],
  }),
  scripted('C1 evenly', 'endpoints are chosen with equal chances', async (scene) => {
    await scene.apply({ endpoints: ['A', 'B', 'C', 'D'] });
    const chosen = new Map<string, number>();
    for (let i = 0; i < EVEN_DRAWS; i += DRAWS_AT_ONCE) {
      const draws = Array.from({ length: DRAWS_AT_ONCE }, () => scene.answerer({ from: 'pod', ...toWeb }));
      for (const by of await Promise.all(draws)) chosen.set(by, (chosen.get(by) ?? 0) + 1);
    }
    for (const [by, times] of chosen) {
      assert.ok(
        Math.abs(times / EVEN_DRAWS - 1 / 4) < 0.1,
        `${by} was chosen ${times} of ${EVEN_DRAWS} times`,
      );
    }
    assert.equal(chosen.size, 4);
  }),
  story('C2', 'a process of the node is masqueraded', {
    given: web,
    packets: [{ from: 'node', ...toWeb, expect: { A: 'MASQ', B: 'MASQ' } }],
  }),
  story('C3', 'a client outside is masqueraded', {
    given: web,
    packets: [{ from: 'client', ...toWeb, expect: { A: 'MASQ', B: 'MASQ' } }],
  }),
  story('C4', 'a pod of another node is masqueraded', {
    given: web,
    packets: [{ from: 'remote', ...toWeb, expect: { A: 'MASQ', B: 'MASQ' } }],
  }),
  story(
    'C4 with ClusterCIDR',
    'a pod of another node is not masqueraded when all pods count as local',
    { given: web, packets: [{ from: 'remote', ...toWeb, expect: { A: 'OWN', B: 'OWN' } }] },
    { setting: { detectLocal: 'ClusterCIDR' } },
  ),
  story('C5', 'a pod is masqueraded when it reaches itself, and only then', {
    given: web,
    packets: [{ from: 'A', ...toWeb, expect: { A: 'MASQ', B: 'OWN' } }],
  }),
  story(
    'C6',
    'masqueradeAll masquerades local pods too',
    { given: web, packets: [{ from: 'pod', ...toWeb, expect: { A: 'MASQ', B: 'MASQ' } }] },
    { setting: { masqueradeAll: true } },
  ),
  story(
    'C7',
    'nobody is masqueraded when local traffic cannot be detected',
    { given: web, packets: [{ from: 'client', ...toWeb, expect: { A: 'OWN', B: 'OWN' } }] },
    { setting: { detectLocal: 'none' } },
  ),
  story('C8', 'other ports and protocols of a cluster IP are rejected', {
    given: web,
    packets: [
      { from: 'pod', ...toWeb, port: 81, expect: 'REJECT', ...leftAlone },
      { from: 'pod', ...toWeb, transport: 'udp', expect: 'REJECT' },
      { from: 'node', ...toWeb, port: 81, expect: 'REJECT', ...leftAlone },
      { from: 'client', ...toWeb, port: 81, expect: 'REJECT', ...leftAlone },
    ],
  }),
  scripted(
    'C8 with ICMP',
    'ICMP to a cluster IP is rejected',
    async (scene) => {
      await scene.apply(web);
      assert.match(await scene.ping({ from: 'pod', ...toWeb }), /[Pp]ort [Uu]nreachable/);
    },
    { unavailable: hasProgram('ping', '-V') ? undefined : 'needs the program ping (package iputils-ping)' },
  ),
  story('C9', 'a cluster IP without endpoints is rejected by ICMP', {
    given: { endpoints: [] },
    packets: [
      { from: 'pod', ...toWeb, expect: 'REJECT' },
      { from: 'node', ...toWeb, expect: 'REJECT' },
      { from: 'client', ...toWeb, expect: 'REJECT' },
    ],
  }),
  story('C10', 'addresses of the service network that no service has are dropped', {
    given: web,
    packets: [
      { from: 'pod', to: 'unallocated', expect: 'DROP', ...unclaimed },
      { from: 'node', to: 'unallocated', expect: 'DROP', ...unclaimed },
      { from: 'client', to: 'unallocated', expect: 'DROP', ...unclaimed },
    ],
  }),
  story('C11', 'datagrams to addresses of the service network that no service has are dropped', {
    given: web,
    packets: [{ from: 'pod', to: 'unallocated', transport: 'udp', expect: 'DROP', ...unclaimed }],
  }),
  story(
    'C11 without ServiceCIDR',
    'addresses that no service has are left alone when the service network is not known',
    {
      given: web,
      packets: [
        { from: 'pod', to: 'unallocated', transport: 'udp', expect: IGNORE },
        { from: 'pod', to: 'unallocated', expect: IGNORE },
        { from: 'pod', ...toWeb, port: 81, expect: 'REJECT', ...leftAlone },
      ],
    },
    { setting: { serviceCIDRs: 'none' } },
  ),
  story('C12', 'internal policy Local uses only endpoints on this node', {
    given: dns,
    packets: [
      { from: 'pod', ...toWeb, expect: { A: 'OWN' } },
      { from: 'node', ...toWeb, expect: { A: 'MASQ' } },
    ],
  }),
  story('C13', 'internal policy Local without an endpoint on this node drops packets', {
    given: { ...dns, endpoints: ['B'] },
    packets: [{ from: 'pod', ...toWeb, expect: 'DROP' }],
  }),
  story('C14', 'internal policy Local leaves external addresses alone', {
    given: { ...dns, endpoints: ['B'], nodePort: true },
    packets: [{ from: 'client', to: 'nodePort', expect: { B: 'MASQ' } }],
  }),
];
