import assert from 'node:assert/strict';
import { kubeProxy, run } from '../../program/run.ts';
import { serviceCIDRObject } from '../objects.ts';
import {
  IGNORE,
  inIptables,
  type ServiceSpec,
  type Story,
  scripted,
  story,
  withoutServiceNetwork,
} from '../story.ts';

const web: ServiceSpec = { nodePort: true, external: true, loadBalancer: true, endpoints: ['A', 'B'] };
const own = { A: 'OWN', B: 'OWN' } as const;
const everybody = { A: 'MASQ', B: 'MASQ' } as const;

/** iptables mode captures only the ports of services. */
const leftAlone = inIptables(IGNORE);
/** Modes without a service network leave unused addresses alone. */
const unclaimed = withoutServiceNetwork(IGNORE);

/** Outcomes of packets when objects are created, changed and deleted. */
export const changeStories: readonly Story[] = [
  scripted(
    'changes/deleted',
    'a deleted service is not served; after it is created again, it is served at every address',
    async (scene) => {
      for (let i = 0; i < 2; i++) {
        await scene.apply(web);
        await scene.expect(
          { from: 'pod', to: 'clusterIP', expect: own },
          { from: 'client', to: 'nodePort', expect: everybody },
          { from: 'client', to: 'external', expect: everybody },
          { from: 'client', to: 'loadBalancer', expect: everybody },
        );
        await scene.remove();
        await scene.expect(
          { from: 'pod', to: 'clusterIP', expect: 'DROP', ...unclaimed },
          { from: 'client', to: 'nodePort', expect: 'RESET' },
          { from: 'client', to: 'external', expect: IGNORE },
          { from: 'client', to: 'loadBalancer', expect: IGNORE },
        );
      }
    },
  ),
  scripted('changes/slices deleted', 'without slices a service is rejected', async (scene) => {
    await scene.apply(web);
    scene.cluster.removeSlices(scene.service());
    await scene.cluster.settled();
    await scene.expect(
      { from: 'pod', to: 'clusterIP', expect: 'REJECT' },
      { from: 'client', to: 'nodePort', expect: 'REJECT' },
      { from: 'client', to: 'external', expect: 'REJECT' },
      { from: 'client', to: 'loadBalancer', expect: 'REJECT' },
    );
    await scene.apply(web);
    await scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
  }),
  story('changes/type', 'a service loses its external addresses and gets them back', [
    { given: web, packets: [{ from: 'client', to: 'nodePort', expect: everybody }] },
    {
      given: { endpoints: ['A', 'B'] },
      packets: [
        { from: 'pod', to: 'clusterIP', expect: own },
        { from: 'client', to: 'nodePort', expect: 'RESET' },
        { from: 'client', to: 'external', expect: IGNORE },
        { from: 'client', to: 'loadBalancer', expect: IGNORE },
      ],
    },
    {
      given: web,
      packets: [
        { from: 'client', to: 'nodePort', expect: everybody },
        { from: 'client', to: 'external', expect: everybody },
        { from: 'client', to: 'loadBalancer', expect: everybody },
      ],
    },
  ]),
  story('changes/port', 'a service that changes its port is rejected at the old one', [
    { given: web, packets: [{ from: 'pod', to: 'clusterIP', expect: own }] },
    {
      given: { ...web, port: 8443 },
      packets: [
        { from: 'pod', to: 'clusterIP', expect: own },
        { from: 'pod', to: 'clusterIP', port: 80, expect: 'REJECT', ...leftAlone },
        { from: 'client', to: 'external', expect: everybody },
        { from: 'client', to: 'external', port: 80, expect: IGNORE },
      ],
    },
  ]),
  story('changes/protocol', 'a service that changes its protocol is rejected with the old one', [
    { given: web, packets: [{ from: 'pod', to: 'clusterIP', expect: own }] },
    {
      given: { ...web, protocols: ['UDP'] },
      packets: [
        { from: 'pod', to: 'clusterIP', expect: own },
        { from: 'pod', to: 'clusterIP', transport: 'tcp', expect: 'REJECT', ...leftAlone },
        { from: 'client', to: 'nodePort', expect: everybody },
        { from: 'client', to: 'nodePort', transport: 'tcp', expect: 'RESET' },
      ],
    },
    {
      given: { ...web, protocols: ['TCP', 'UDP'] },
      packets: [
        { from: 'pod', to: 'clusterIP', transport: 'tcp', expect: own },
        { from: 'pod', to: 'clusterIP', transport: 'udp', expect: own },
      ],
    },
    {
      given: { ...web, protocols: ['TCP'] },
      packets: [
        { from: 'pod', to: 'clusterIP', transport: 'tcp', expect: own },
        { from: 'pod', to: 'clusterIP', transport: 'udp', expect: 'REJECT' },
      ],
    },
  ]),
  story('changes/policy', 'a change of traffic policies takes effect', [
    {
      given: { ...web, externalPolicy: 'Local' },
      packets: [
        { from: 'client', to: 'nodePort', expect: { A: 'OWN' } },
        { from: 'pod', to: 'clusterIP', expect: own },
      ],
    },
    {
      given: web,
      packets: [{ from: 'client', to: 'nodePort', expect: everybody }],
    },
    {
      given: { ...web, internalPolicy: 'Local' },
      packets: [
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } },
        { from: 'client', to: 'nodePort', expect: everybody },
      ],
    },
    { given: web, packets: [{ from: 'pod', to: 'clusterIP', expect: own }] },
  ]),
  story('changes/endpoints', 'packets follow endpoints that are added, removed, drained and added again', [
    {
      given: { ...web, endpoints: ['A'] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } }],
    },
    {
      given: { ...web, endpoints: ['A', 'B', 'C', 'D'] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN', C: 'OWN', D: 'OWN' } }],
    },
    {
      given: { ...web, endpoints: ['D', 'B'] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { B: 'OWN', D: 'OWN' } }],
    },
    { given: { ...web, endpoints: [] }, packets: [{ from: 'pod', to: 'clusterIP', expect: 'REJECT' }] },
    {
      given: {
        ...web,
        endpoints: [
          { at: 'C', state: 'draining' },
          { at: 'D', state: 'unready' },
        ],
      },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { C: 'OWN' } }],
    },
    {
      given: { ...web, endpoints: [{ at: 'C', state: 'draining' }, 'D'] },
      packets: [{ from: 'pod', to: 'clusterIP', expect: { D: 'OWN' } }],
    },
  ]),
  scripted('changes/neighbour', 'a change of one service leaves another one alone', async (scene) => {
    await scene.apply(web);
    await scene.apply(web, 'other');
    await scene.apply({ ...web, endpoints: [] }, 'other');
    await scene.expect(
      { from: 'pod', to: 'clusterIP', expect: own },
      { from: 'client', to: 'nodePort', expect: everybody },
    );
    await scene.remove('other');
    await scene.expect(
      { from: 'pod', to: 'clusterIP', expect: own },
      { from: 'client', to: 'nodePort', expect: everybody },
    );
  }),
  scripted(
    'changes/service network',
    'unused addresses of the service network are dropped exactly while the network is known',
    async (scene) => {
      const { cluster } = scene;
      await scene.apply(web);
      await scene.expect({ from: 'pod', to: 'unallocated', expect: 'DROP' });
      cluster.api.delete('serviceCIDRs', '', 'kubernetes');
      try {
        await scene.eventually({ from: 'pod', to: 'unallocated', expect: IGNORE });
        await scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
      } finally {
        cluster.api.put('serviceCIDRs', serviceCIDRObject(cluster.families));
      }
      await scene.eventually({ from: 'pod', to: 'unallocated', expect: 'DROP' });
    },
    { alone: true },
  ),
  scripted(
    'changes/second service network',
    'a second service network that overlaps the first is dropped with it',
    async (scene) => {
      const { cluster, book } = scene;
      await scene.apply(web);
      const wider = book.family === 'IPv4' ? '10.96.0.0/15' : 'fd00:96::/64';
      cluster.api.put('serviceCIDRs', { metadata: { name: 'wider' }, spec: { cidrs: [wider] } });
      await scene.eventually({ from: 'pod', to: 'unallocated', expect: 'DROP' });
      cluster.api.delete('serviceCIDRs', '', 'kubernetes');
      await cluster.settled();
      await scene.expect({ from: 'pod', to: 'unallocated', expect: 'DROP' });
      cluster.api.put('serviceCIDRs', serviceCIDRObject(cluster.families));
      cluster.api.delete('serviceCIDRs', '', 'wider');
      await cluster.settled();
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
    },
    { alone: true },
  ),
  scripted(
    'changes/while away',
    'changes made while the program was stopped are in effect after its start',
    async (scene) => {
      const { cluster } = scene;
      await scene.apply(web);
      await scene.apply(web, 'leaving');
      await cluster.stop();
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
      cluster.remove(scene.service('leaving'));
      scene.put({ ...web, externalPolicy: 'Local', endpoints: ['A', 'D'] });
      scene.put({ ...web, endpoints: ['B'] }, 'joining');
      // Addresses of the service network stay dropped, also when its range comes after the rest.
      const isRange = ({ path }: { path: string }) => path.endsWith('/servicecidrs');
      cluster.api.faults.next({ kind: 'trickle', bytes: 65_536, everyMs: 300 }, isRange);
      await cluster.restart();
      await scene.expect(
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', D: 'OWN' } },
        { from: 'client', to: 'nodePort', expect: { A: 'OWN' } },
        { from: 'pod', to: 'clusterIP', of: 'leaving', expect: 'DROP', ...unclaimed },
        { from: 'client', to: 'nodePort', of: 'leaving', expect: 'RESET' },
        { from: 'pod', to: 'clusterIP', of: 'joining', expect: { B: 'OWN' } },
      );
    },
    { alone: true },
  ),
  scripted(
    'C52',
    'flushed rules are written again, at the latest with the next change',
    async (scene) => {
      await scene.apply(web);
      await scene.apply({ ...web, endpoints: ['A'] }, 'other');
      await scene.cluster.wipe();
      await scene.apply({ ...web, endpoints: ['B'] }, 'other');
      await scene.expect(
        { from: 'pod', to: 'clusterIP', of: 'other', expect: { B: 'OWN' } },
        { from: 'pod', to: 'clusterIP', expect: own },
        { from: 'client', to: 'nodePort', expect: everybody },
        { from: 'client', to: 'loadBalancer', expect: everybody },
      );
    },
    { alone: true },
  ),
  story('C53', 'a kernel that is too old is refused, unless the check is switched off', {
    given: web,
    packets: [],
  }),
  scripted(
    'C54',
    'clean-up leaves nothing behind, also when it is repeated',
    async (scene) => {
      const { cluster } = scene;
      await scene.apply(web);
      await cluster.stop();
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
      for (let i = 0; i < 2; i++) {
        const { code, stderr } = await run(kubeProxy, ['--config', cluster.writeConfig(), '--cleanup']);
        assert.equal(code, 0, stderr);
        await scene.expect(
          { from: 'pod', to: 'clusterIP', expect: IGNORE },
          { from: 'client', to: 'external', expect: IGNORE },
          { from: 'client', to: 'nodePort', expect: 'RESET' },
        );
      }
      await cluster.restart();
      await scene.expect({ from: 'pod', to: 'clusterIP', expect: own });
    },
    { alone: true },
  ),
];
