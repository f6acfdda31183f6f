import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Host, type OpenConversation } from '../cluster/lab/host.ts';
import { run, runBatch } from '../cluster/lab/namespace.ts';
import { conditions } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { StartedProxy } from '../program/started.ts';

/** The addresses of one host in each family, by its number on the two networks. */
const outside = (n: number) => [`192.0.2.${n}/24`, `2001:db8::${n}/64`];
const inside = (n: number) => [`10.244.0.${n}/24`, `fd00:244::${n}/64`];
const bare = (address: string) => address.replace(/\/.*/, '');

const nodes = [1, 2] as const;
const pods = [11, 12, 13, 14] as const;
const client = 100;
/** Addresses of the Service. */
export const frontends = ['10.96.0.1', 'fd00:96::1'] as const;

/**
 * A client and four pods with two nodes between them, each node with a proxy. One node at a time is on the way, in both
 * directions, as when routers choose one of several equal routes.
 */
export class TwoNodes {
  readonly #namespace: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'kpt-nodes-'));
  readonly #client: Host;
  readonly #pods: readonly Host[];
  #proxies: StartedProxy[] = [];

  static async build(namespace: string): Promise<TwoNodes> {
    runBatch(
      [],
      ['outside', 'inside'].flatMap((bridge) => [`link add ${bridge} type bridge`, `link set ${bridge} up`]),
    );
    connect(namespace, 'client', { outside: outside(client) });
    for (const n of pods) connect(namespace, `pod${n}`, { inside: inside(n) });
    for (const n of nodes) {
      connect(namespace, `node${n}`, { outside: outside(n), inside: inside(n) });
      const forward = [
        'net.ipv4.ip_forward=1',
        'net.ipv6.conf.all.forwarding=1',
        'net.ipv4.conf.all.rp_filter=0',
      ];
      run('ip', 'netns', 'exec', `${namespace}-node${n}`, 'sysctl', '-qw', ...forward);
    }
    const lab = new TwoNodes(namespace);
    for (const pod of lab.#pods) await pod.serve(8080);
    return lab;
  }

  private constructor(namespace: string) {
    this.#namespace = namespace;
    this.#client = new Host('client', `${namespace}-client`);
    this.#pods = pods.map((n) => new Host(`pod${n}`, `${namespace}-pod${n}`));
    mkdirSync(join(this.#directory, 'manifests'));
  }

  async close(): Promise<void> {
    await this.stop();
    for (const host of [this.#client, ...this.#pods]) host.close();
    rmSync(this.#directory, { recursive: true });
  }

  /** Starts a proxy on each node, for a Service with these annotations, and waits until both serve it. */
  async start(annotations: Readonly<Record<string, string>>): Promise<void> {
    writeFileSync(join(this.#directory, 'manifests/shop.json'), JSON.stringify(manifests(annotations)));
    const config = join(this.#directory, 'config.json');
    writeFileSync(config, JSON.stringify(configuration));
    const args = ['--config', config, '--manifests', join(this.#directory, 'manifests')];
    this.#proxies = nodes.map((n) => new StartedProxy(args, `${this.#namespace}-node${n}`));
    for (const n of nodes.toReversed()) {
      this.routeOver(n);
      for (const address of frontends) {
        await eventually(`node ${n} serves ${address}`, async () => {
          return (await this.#client.ask({ address, port: 80 })).kind === 'answered';
        });
      }
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.kill()));
    this.#proxies = [];
    for (const n of nodes)
      run('ip', 'netns', 'exec', `${this.#namespace}-node${n}`, 'nft', 'flush', 'ruleset');
  }

  /** From now on all packets go over this node. */
  routeOver(n: (typeof nodes)[number]): void {
    const route = (host: Host, [v4 = '', v6 = '']: readonly string[]): void => {
      runBatch(
        ['-n', host.namespace],
        [`route replace default via ${bare(v4)}`, `route replace ::/0 via ${bare(v6)}`],
      );
    };
    route(this.#client, outside(n));
    for (const pod of this.#pods) route(pod, inside(n));
  }

  open(address: string): Promise<OpenConversation> {
    return this.#client.open({ address, port: 80 });
  }
}

/** Makes a namespace with a cable to each of the bridges. */
function connect(
  namespace: string,
  name: string,
  networks: Readonly<Record<string, readonly string[]>>,
): void {
  const own = `${namespace}-${name}`;
  run('ip', 'netns', 'add', own);
  run('ip', '-n', own, 'link', 'set', 'lo', 'up');
  for (const [bridge, addresses] of Object.entries(networks)) {
    const cable = `${name}-${bridge.slice(0, 2)}`;
    runBatch(
      [],
      [
        `link add ${cable} type veth peer name ${bridge} netns ${own}`,
        `link set ${cable} master ${bridge} up`,
      ],
    );
    runBatch(
      ['-n', own],
      [
        `link set ${bridge} up`,
        ...addresses.map(
          (address) => `addr add ${address} dev ${bridge}${address.includes(':') ? ' nodad' : ''}`,
        ),
      ],
    );
  }
}

/** Without a detector of local pods nothing is masqueraded: both nodes show a pod the same client. */
const configuration = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'nftables',
  conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
};

function manifests(annotations: Readonly<Record<string, string>>): object {
  const metadata = { namespace: 'shop', name: 'web' };
  const slice = (addressType: string, family: 0 | 1) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...metadata,
      name: `web-${family}`,
      labels: { 'kubernetes.io/service-name': 'web' },
    },
    addressType,
    endpoints: pods.map((n) => ({
      addresses: [bare(inside(n)[family] ?? '')],
      conditions: conditions.ready,
    })),
    ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  });
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { ...metadata, annotations },
        spec: {
          type: 'ClusterIP',
          clusterIP: frontends[0],
          clusterIPs: frontends,
          ipFamilies: ['IPv4', 'IPv6'],
          ports: [{ port: 80, protocol: 'TCP' }],
        },
      },
      slice('IPv4', 0),
      slice('IPv6', 1),
    ],
  };
}
