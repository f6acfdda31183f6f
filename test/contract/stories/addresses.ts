import { eventuallyEqual } from '../../eventually.ts';
import { runInNode } from '../node-commands.ts';
import { healthCheckPortOf, nodePortOf } from '../objects.ts';
import type { Scene } from '../scene.ts';
import {
  atEveryAddress,
  IGNORE,
  inIptables,
  type ServiceSpec,
  type Setting,
  type Story,
  scripted,
  story,
  withoutServiceNetwork,
} from '../story.ts';

const web: ServiceSpec = { nodePort: true, external: true, loadBalancer: true, endpoints: ['A', 'B'] };
const everybody = { A: 'MASQ', B: 'MASQ' } as const;

/** Modes without a service network leave unused addresses alone. */
const unclaimed = withoutServiceNetwork(IGNORE);

const secondOnly: Setting = { nodePortAddresses: ['198.51.100.0/24', '2001:db8:0:2::/64'] };
const loopbackOnly: Setting = { nodePortAddresses: ['127.0.0.0/8', '::1/128'] };

/** Which addresses and ports are captured, and which are not. */
export const addressStories: readonly Story[] = [
  story('addresses/other ports', 'external IPs and load balancer IPs capture only their port and protocol', {
    given: web,
    packets: [
      { from: 'pod', to: 'external', port: 81, expect: IGNORE },
      { from: 'client', to: 'external', port: 81, expect: IGNORE },
      { from: 'pod', to: 'loadBalancer', port: 81, expect: IGNORE },
      { from: 'node', to: 'loadBalancer', port: 81, expect: IGNORE },
    ],
  }),
  story('addresses/hostname only', 'a load balancer without an address changes nothing', {
    given: { ...web, loadBalancer: 'hostname only' },
    packets: [
      { from: 'pod', to: 'loadBalancer', expect: IGNORE },
      { from: 'client', to: 'nodePort', expect: everybody },
    ],
  }),
  story('addresses/headless', 'a service without a cluster IP has no address', {
    given: { headless: true, endpoints: ['A', 'B'] },
    packets: [{ from: 'pod', to: 'clusterIP', expect: 'DROP', ...unclaimed }],
  }),
  story('addresses/other proxy', 'a service that is labelled for another proxy is not served', {
    given: { ...web, labels: { 'service.kubernetes.io/service-proxy-name': 'other' } },
    packets: [
      { from: 'pod', to: 'clusterIP', expect: 'DROP', ...unclaimed },
      { from: 'client', to: 'nodePort', expect: 'RESET' },
      { from: 'pod', to: 'external', expect: IGNORE },
    ],
  }),
  story('addresses/both protocols', 'TCP and UDP share a port number and a node port', {
    given: { ...web, protocols: ['TCP', 'UDP'] },
    packets: (['tcp', 'udp'] as const).flatMap((transport) => [
      { from: 'pod', to: 'clusterIP', transport, expect: { A: 'OWN', B: 'OWN' } } as const,
      { from: 'client', to: 'nodePort', transport, expect: everybody } as const,
      { from: 'client', to: 'external', transport, expect: everybody } as const,
    ]),
  }),
  story('addresses/silent conditions', 'an endpoint without conditions counts as ready', {
    given: { ...web, endpoints: [{ at: 'A', state: 'silent' }] },
    packets: [{ from: 'pod', to: 'clusterIP', expect: { A: 'OWN' } }],
  }),
  scripted(
    'addresses/shadowed',
    'a node port takes precedence over a process that listens on the same port',
    async (scene) => {
      await scene.apply(web);
      const node = scene.cluster.landscape.host('node');
      const port = nodePortOf(scene.service().n);
      await node.serve(port, 'tcp', scene.book.node);
      await node.serve(port + 1000, 'tcp', scene.book.node);
      await scene.expect(
        { from: 'client', to: 'nodePort', expect: everybody },
        { from: 'client', to: 'nodePort', port: port + 1000, expect: { node: 'OWN' } },
      );
      await node.stop(port);
      await node.stop(port + 1000);
    },
  ),
  scripted(
    'addresses/left to the node',
    'a process at an address that serves no node ports still answers',
    async (scene) => {
      await scene.apply({ ...web, protocols: ['UDP'] });
      const node = scene.cluster.landscape.host('node');
      const port = nodePortOf(scene.service().n);
      await node.serve(port, 'udp', scene.book.nodeSecond);
      await scene.expect({
        from: 'client',
        to: 'second',
        expect: { node: 'OWN' },
        ...atEveryAddress(everybody),
      });
      await node.stop(port, 'udp');
    },
  ),
  story(
    'addresses/second only',
    'only the configured addresses serve node ports',
    {
      given: web,
      packets: [
        { from: 'client', to: 'second', expect: everybody },
        { from: 'node', to: 'second', expect: everybody },
        { from: 'client', to: 'nodePort', expect: 'RESET' },
        { from: 'pod', to: 'nodePort', expect: 'RESET' },
        { from: 'client', to: 'external', expect: everybody },
      ],
    },
    { setting: secondOnly },
  ),
  scripted(
    'addresses/new address',
    'an address that the node gets later serves node ports when the configuration covers it',
    async (scene) => {
      await scene.apply(web);
      const address = scene.book.family === 'IPv4' ? '198.51.100.77' : '2001:db8:0:2::77';
      const port = nodePortOf(scene.service().n);
      const nodad = scene.book.family === 'IPv4' ? [] : ['nodad'];
      await runInNode('ip', 'addr', 'add', address, 'dev', 'lo', ...nodad);
      try {
        await answersAt(scene, address, port, true);
      } finally {
        await runInNode('ip', 'addr', 'del', address, 'dev', 'lo');
      }
    },
    { setting: secondOnly, alone: true },
  ),
  story(
    'addresses/loopback only',
    'a configuration with loopback only serves node ports at no address',
    {
      given: web,
      packets: [
        { from: 'client', to: 'nodePort', expect: 'RESET' },
        { from: 'client', to: 'second', expect: 'RESET' },
        { from: 'node', to: 'loopback', expect: 'RESET', ...inIptables(everybody, 'IPv4') },
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
      ],
    },
    { setting: loopbackOnly },
  ),
  story(
    'addresses/no external IPs',
    'external IPs can be switched off',
    {
      given: web,
      packets: [
        { from: 'pod', to: 'external', expect: IGNORE },
        { from: 'client', to: 'loadBalancer', expect: everybody },
      ],
    },
    { setting: { gates: { AllowServiceExternalIPs: false }, masqueradeBit: 20 } },
  ),
  story(
    'addresses/masquerade bit',
    'any mark bit can be configured for masquerading',
    {
      given: web,
      packets: [
        { from: 'client', to: 'clusterIP', expect: everybody },
        { from: 'client', to: 'nodePort', expect: everybody },
        { from: 'pod', to: 'clusterIP', expect: { A: 'OWN', B: 'OWN' } },
        { from: 'A', to: 'clusterIP', expect: { A: 'MASQ', B: 'OWN' } },
      ],
    },
    { setting: { gates: { AllowServiceExternalIPs: false }, masqueradeBit: 20 } },
  ),
  scripted(
    'addresses/health check',
    'the health check port reports the number of ready endpoints on this node',
    async (scene) => {
      const local: ServiceSpec = { ...web, externalPolicy: 'Local' };
      await scene.apply({ ...local, endpoints: ['A', 'C', 'B'] });
      await healthCheckSays(scene, 200, 2);
      await scene.apply({ ...local, endpoints: [{ at: 'A', state: 'draining' }, 'B'] });
      await healthCheckSays(scene, 503, 0);
      await scene.apply({ ...local, endpoints: ['C'] });
      await healthCheckSays(scene, 200, 1);
      await scene.remove();
      await healthCheckSays(scene, undefined, 0);
    },
  ),
];

/** Waits until an endpoint answers at a node port of this address, or until none answers any more. */
async function answersAt(scene: Scene, address: string, port: number, wanted: boolean): Promise<void> {
  const pod = scene.cluster.landscape.host('pod');
  const isAnswered = async () => (await pod.ask({ address, port })).kind === 'answered';
  await eventuallyEqual(`a node port at ${address} follows the address`, isAnswered, wanted);
}

/** Waits for this answer of the health check port; without a status, waits until nothing listens there. */
async function healthCheckSays(scene: Scene, status: number | undefined, endpoints: number): Promise<void> {
  const { node, family } = scene.book;
  const url = `http://${family === 'IPv4' ? node : `[${node}]`}:${healthCheckPortOf(scene.service().n)}/`;
  const ask = () =>
    fetch(url).then(
      async (response) => [
        response.status,
        ((await response.json()) as { localEndpoints: number }).localEndpoints,
      ],
      () => [undefined, 0],
    );
  await eventuallyEqual(`the health check at ${url} follows`, ask, [status, endpoints]);
}
