import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { hasNetAdmin } from '../../src/kernel/capabilities.ts';
import { hasIPv6 } from '../../src/kernel/probe.ts';
import { systemFiles } from '../../src/kernel/system-files.ts';
import { bitsOf, familyOf, isLoopback, parseIP } from '../../src/model/ip.ts';
import { type Arguments, insideMark } from './arguments.ts';
import { listenAtLoopback } from './loopback.ts';
import { kubeProxy, kubeProxyctl } from './proxy.ts';
import type { DemoNode } from './shop.ts';

/** Where the demonstration runs, and what the proxy can do there. */
export interface Stage {
  /** Which mode runs where, and why, in a sentence. */
  readonly description: string;
  /** Flags of the proxy. */
  readonly flags: readonly string[];
  /** The addresses at which node ports are asked. */
  readonly nodeIPs: readonly string[];
  /** Packets to service addresses cannot leave this machine. Otherwise those addresses may belong to real servers. */
  readonly hasOwnNetwork: boolean;
  /** The metrics server of the proxy, as `host:port`. */
  readonly metrics: string;
  /** The command with which another terminal asks the proxy. */
  readonly ctl: string;
  /** Whether a stand-in can listen at this address. */
  canHold(address: string): boolean;
  /** Makes the addresses usable for stand-ins. */
  addAddresses(addresses: readonly string[]): void;
}

const defaultIPs = ['192.0.2.1', '2001:db8::1'];
const metricsPort = 10_249;
const healthzPort = 10_256;

/** Keeps settings that belong to the whole machine, not to a namespace. */
const noConntrackSettings = [
  '--conntrack-max-per-core=0',
  '--conntrack-tcp-timeout-established=0',
  '--conntrack-tcp-timeout-close-wait=0',
];

/**
 * Chooses the stage. As root it is a new network namespace, and this process replaces itself by one inside (same pid).
 * Without root, or when no namespace can be made, it is the machine's loopback.
 */
export async function openStage(args: Arguments, node: DemoNode): Promise<Stage> {
  if (args.isInside) return ownNetwork(args.manifests, node);
  if (process.getuid?.() !== 0) return loopback('not running as root', node);
  const again = [args.manifests, `--node=${node.name}`];
  const obstacle = namespaceObstacle();
  if (obstacle === undefined) becomeThrough('unshare', ['--net', '--'], [...again, insideMark]);
  // With CAP_NET_ADMIN the proxy would capture packets of the whole machine.
  if (hasNetAdmin(systemFiles)) {
    becomeThrough('setpriv', ['--bounding-set=-net_admin', '--inh-caps=-net_admin', '--'], again);
  }
  return loopback(`no network namespace can be made (${obstacle})`, node);
}

function ownNetwork(manifests: string, node: DemoNode): Stage {
  const families = new Set(hasIPv6(systemFiles) ? ['IPv4', 'IPv6'] : ['IPv4']);
  const isUsable = (ip: string) => families.has(familyOf(ip) ?? '');
  const nodeIPs = nodeAddresses(node).filter(isUsable);
  execFileSync('ip', ['link', 'set', 'lo', 'up']);
  addToLoopback(nodeIPs);
  const device = deviceToNowhere();
  for (const ip of nodeIPs) execFileSync('ip', ['route', 'add', rangeOfAll(ip), 'dev', device, 'src', ip]);
  const place = 'in a network namespace of its own, so nothing of this machine changes';
  const common = [
    `--hostname-override=${node.name}`,
    ...(node.ips.length > 0 ? [] : [`--bind-address=${nodeIPs[0]}`]),
    `--nodeport-addresses=${nodeIPs.map(rangeOf).join(',')}`,
    // Not at all addresses: an endpoint may have this port at an address of the node.
    `--healthz-bind-address=127.0.0.1:${healthzPort}`,
    ...noConntrackSettings,
  ];
  const nftables = ['--proxy-mode=nftables', ...common];
  const obstacle = startObstacle([`--manifests=${manifests}`, ...nftables]);
  const [description, flags] =
    obstacle === undefined
      ? [`nftables mode, ${place}`, nftables]
      : [
          `userspace mode, ${place}; nftables mode cannot run here: ${obstacle}`,
          ['--proxy-mode=userspace', ...common],
        ];
  return {
    description,
    flags,
    nodeIPs,
    hasOwnNetwork: true,
    metrics: `127.0.0.1:${metricsPort}`,
    ctl: `${sudo()}nsenter --net=/proc/${process.pid}/ns/net ${kubeProxyctl}`,
    canHold: isUsable,
    addAddresses: addToLoopback,
  };
}

async function loopback(reason: string, node: DemoNode): Promise<Stage> {
  // Another kube-proxy may run on this machine.
  const metrics = `127.0.0.1:${await freePort(metricsPort)}`;
  const flags = [
    '--proxy-mode=userspace',
    `--hostname-override=${node.name}`,
    '--nodeport-addresses=127.0.0.0/8,::1/128',
    `--healthz-bind-address=127.0.0.1:${await freePort(healthzPort)}`,
    `--metrics-bind-address=${metrics}`,
    ...noConntrackSettings,
  ];
  return {
    description: `userspace mode, at loopback addresses of this machine: ${reason}`,
    flags,
    nodeIPs: ['127.0.0.1', '::1'],
    hasOwnNetwork: false,
    metrics,
    ctl: `${kubeProxyctl} --server=http://${metrics}`,
    // Other addresses may belong to real servers, and other machines must not reach the stand-ins.
    canHold: (address) => {
      const ip = parseIP(address);
      return ip !== undefined && isLoopback(ip);
    },
    addAddresses: () => {},
  };
}

/** One address per family: that of the Node in the manifests, or one of the ranges for documentation. */
function nodeAddresses({ ips }: DemoNode): string[] {
  return defaultIPs.map((other) => ips.find((ip) => familyOf(ip) === familyOf(other)) ?? other);
}

/**
 * A device for the route to all service addresses. Not the loopback interface if another one can be made: the kernel
 * sends no error for a packet that is rejected on its way there.
 */
function deviceToNowhere(): string {
  const name = 'nowhere';
  const isMade = ['dummy', 'bridge'].some(
    (type) => spawnSync('ip', ['link', 'add', name, 'type', type]).status === 0,
  );
  if (!isMade) return 'lo';
  execFileSync('ip', ['link', 'set', name, 'up']);
  return name;
}

/** Adds addresses to the loopback interface of this namespace. One that the kernel refuses gets no stand-in. */
function addToLoopback(addresses: readonly string[]): void {
  const lines = [...new Set(addresses)].map((ip) => {
    // Without nodad, an IPv6 address cannot be used for a second.
    return `address replace ${rangeOf(ip)} dev lo${ip.includes(':') ? ' nodad' : ''}\n`;
  });
  if (lines.length > 0) spawnSync('ip', ['-force', '-batch', '-'], { input: lines.join('') });
}

function rangeOf(ip: string): string {
  return `${ip}/${bitsOf(familyOf(ip) ?? 'IPv4')}`;
}

function rangeOfAll(ip: string): string {
  return ip.includes(':') ? '::/0' : '0.0.0.0/0';
}

function sudo(): string {
  return process.env.SUDO_USER === undefined ? '' : 'sudo ';
}

/** This port of 127.0.0.1 when it is free, else another one. */
async function freePort(wanted: number): Promise<number> {
  const server = createServer();
  await listenAtLoopback(server, wanted);
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return port;
}

/** Why no network namespace can be made and set up; undefined when one can. */
function namespaceObstacle(): string | undefined {
  const args = ['--net', '--', 'ip', 'link', 'set', 'lo', 'up'];
  const { status, stderr, error } = spawnSync('unshare', args, { encoding: 'utf8' });
  return status === 0 ? undefined : (error?.message ?? stderr.trim());
}

/** Why the proxy cannot start with these flags; undefined when it can. */
function startObstacle(flags: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(kubeProxy, [...flags, '--init-only'], { encoding: 'utf8' });
  if (status === 0) return undefined;
  const reason = /"command failed" err="(.*)"$/m.exec(stderr)?.[1];
  return error?.message ?? reason ?? stderr.trim();
}

/** Replaces this process by itself, with other arguments, through a command that changes its rights or namespace. */
function becomeThrough(command: string, options: readonly string[], args: readonly string[]): never {
  if (!process.execve) throw new Error('npm start needs Linux');
  const self = [process.execPath, process.argv[1] ?? '', ...args];
  return process.execve('/usr/bin/env', ['env', command, ...options, ...self], process.env);
}
