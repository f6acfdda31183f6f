import assert from 'node:assert/strict';
import { eventually } from '../../eventually.ts';
import type { Scene } from '../scene.ts';
import { inIptables, type ServiceSpec, type Setting, type Story, scripted, story } from '../story.ts';

const web: ServiceSpec = { nodePort: true, endpoints: ['A', 'B'] };
const dns: ServiceSpec = { ...web, protocols: ['UDP'], port: 53 };

/** In iptables mode the kernel routes them to the endpoints. */
const servedInIPv4 = inIptables({ A: 'MASQ', B: 'MASQ' }, 'IPv4');

const gates = { KubeProxyNFTablesLocalhostNodePorts: true };
const gateOn: Setting = { gates };
const served: Setting = { gates, nodePortAddresses: ['primary', 'localhost'] };

/** The number of packets to loopback node ports that were rejected so far. */
async function rejected(scene: Scene, protocol: string): Promise<number> {
  const name = 'kubeproxy_nftables_localhost_nodeport_rejected_packets_total';
  return scene.cluster.metric(name, `ip_family="${scene.book.family}",protocol="${protocol}"`);
}

/** Node ports at loopback addresses. */
export const loopbackStories: readonly Story[] = [
  story('C46', 'node ports at loopback addresses are left alone', {
    given: web,
    packets: [{ from: 'node', to: 'loopback', expect: 'RESET', ...servedInIPv4 }],
  }),
  story(
    'C46 with all addresses',
    'node ports at loopback addresses are left alone when all addresses serve node ports',
    {
      given: web,
      packets: [
        { from: 'node', to: 'loopback', expect: 'RESET', ...servedInIPv4 },
        { from: 'node', to: 'nodePort', expect: { A: 'MASQ', B: 'MASQ' } },
      ],
    },
    { setting: { nodePortAddresses: ['0.0.0.0/0', '::/0'] } },
  ),
  scripted(
    'C47',
    'with the feature gate, node ports at loopback addresses are rejected and counted',
    async (scene) => {
      await scene.apply(web);
      await scene.apply({ ...dns, endpoints: [] }, 'dns');
      const before = { TCP: await rejected(scene, 'TCP'), UDP: await rejected(scene, 'UDP') };
      const to = scene.book.family === 'IPv4' ? 'loopback2' : 'loopback';
      await scene.expect(
        { from: 'node', to: 'loopback', expect: 'REJECT' },
        { from: 'node', to, of: 'dns', expect: 'REJECT' },
      );
      // A concurrent scrape for another story may have read the counters before.
      for (const protocol of ['TCP', 'UDP'] as const) {
        const isCounted = async () => (await rejected(scene, protocol)) > before[protocol];
        await eventually(`rejected packets of ${protocol} are counted`, isCounted);
      }
      await scene.expect({ from: 'node', to: 'nodePort', expect: { A: 'MASQ', B: 'MASQ' } });
    },
    { setting: gateOn },
  ),
  scripted(
    'C48',
    'TCP and UDP node ports are served at the loopback address that is configured',
    async (scene) => {
      await scene.apply(web);
      await scene.apply(dns, 'dns');
      await scene.ready({ from: 'node', to: 'loopback' });
      await scene.ready({ from: 'node', to: 'loopback', of: 'dns' });
      await scene.expect(
        { from: 'node', to: 'loopback', expect: { A: 'MASQ', B: 'MASQ' } },
        { from: 'node', to: 'loopback', of: 'dns', expect: { A: 'MASQ', B: 'MASQ' } },
        { from: 'client', to: 'nodePort', expect: { A: 'MASQ', B: 'MASQ' } },
      );
      if (scene.book.family === 'IPv4')
        await scene.expect({ from: 'node', to: 'loopback2', expect: 'RESET' });
    },
    { setting: served },
  ),
  scripted(
    'C49',
    'under policy Local only endpoints on this node serve loopback clients',
    async (scene) => {
      await scene.apply({ ...web, externalPolicy: 'Local' });
      await scene.ready({ from: 'node', to: 'loopback' });
      await scene.expect({ from: 'node', to: 'loopback', expect: { A: 'MASQ' } });
      await scene.apply({ ...web, externalPolicy: 'Local', endpoints: ['B'] });
      await scene.eventually({ from: 'node', to: 'loopback', expect: 'RESET' });
      await scene.expect({ from: 'node', to: 'nodePort', expect: { B: 'MASQ' } });
    },
    { setting: served },
  ),
  scripted(
    'C50',
    'the loopback listener and its open connections end with the service',
    async (scene) => {
      await scene.apply(web);
      await scene.ready({ from: 'node', to: 'loopback' });
      const conversation = await scene.open({ from: 'node', to: 'loopback' });
      assert.ok(await conversation.ask());
      await scene.remove();
      await scene.eventually({ from: 'node', to: 'loopback', expect: 'RESET' });
      assert.equal(await conversation.ask(500), null);
      await conversation.close();
    },
    { setting: served },
  ),
  scripted(
    'loopback/follows endpoints',
    'new loopback connections reach new endpoints, open connections stay with theirs',
    async (scene) => {
      await scene.apply({ ...web, endpoints: ['A'] });
      await scene.ready({ from: 'node', to: 'loopback' });
      const conversation = await scene.open({ from: 'node', to: 'loopback' });
      await scene.apply({ ...web, endpoints: ['B'] });
      await scene.eventually({ from: 'node', to: 'loopback', expect: { B: 'MASQ' } });
      assert.equal((await conversation.ask())?.by, 'A');
      await scene.apply({ ...web, endpoints: [] });
      await scene.eventually({ from: 'node', to: 'loopback', expect: 'RESET' });
      await conversation.close();
    },
    { setting: served },
  ),
  scripted(
    'loopback/affinity',
    'with affinity all loopback addresses count as one client',
    async (scene) => {
      await scene.apply({ ...web, affinitySeconds: 600 });
      await scene.ready({ from: 'node', to: 'loopback' });
      const first = await scene.answerer({ from: 'node', to: 'loopback' });
      await scene.expect({ from: 'node', to: 'loopback', expect: { [first]: 'MASQ' } });
    },
    { setting: served },
  ),
];
