import { execFileSync, spawnSync } from 'node:child_process';
import { hasNetAdmin } from '../../src/kernel/capabilities.ts';
import { systemFiles } from '../../src/kernel/system-files.ts';
import { kubeProxy } from './proxy.ts';

/** Where the demonstration runs, and what the proxy can do there. */
export interface Stage {
  /** Which mode runs where, and why, in a sentence. */
  readonly description: string;
  /** Flags of the proxy. */
  readonly flags: readonly string[];
  /** The address at which node ports are asked. */
  readonly nodeIP: string;
  /** Packets to service addresses cannot leave this machine. Otherwise those addresses may belong to real servers. */
  readonly hasOwnNetwork: boolean;
}

const insideMark = '--in-own-network';
const nodeIP = '192.0.2.1';
const nodeName = '--hostname-override=node-1';

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
export function openStage(manifests: string): Stage {
  if (process.argv.at(-1) === insideMark) return ownNetwork(manifests);
  if (process.getuid?.() !== 0) return loopback('not running as root');
  const obstacle = namespaceObstacle();
  if (obstacle === undefined) becomeThrough('unshare', ['--net', '--'], [manifests, insideMark]);
  // With CAP_NET_ADMIN the proxy would capture packets of the whole machine.
  if (hasNetAdmin(systemFiles)) {
    becomeThrough('setpriv', ['--bounding-set=-net_admin', '--inh-caps=-net_admin', '--'], [manifests]);
  }
  return loopback(`no network namespace can be made (${obstacle})`);
}

function ownNetwork(manifests: string): Stage {
  const ip = (...args: readonly string[]) => execFileSync('ip', args);
  ip('link', 'set', 'lo', 'up');
  ip('address', 'add', `${nodeIP}/32`, 'dev', 'lo');
  ip('route', 'add', 'default', 'dev', 'lo', 'src', nodeIP);
  const place = 'in a network namespace of its own, so nothing of this machine changes';
  const common = [
    nodeName,
    `--bind-address=${nodeIP}`,
    '--nodeport-addresses=primary',
    ...noConntrackSettings,
  ];
  const nftables = ['--proxy-mode=nftables', ...common];
  const obstacle = startObstacle([`--manifests=${manifests}`, ...nftables]);
  if (obstacle === undefined) {
    return { description: `nftables mode, ${place}`, flags: nftables, nodeIP, hasOwnNetwork: true };
  }
  const description = `userspace mode, ${place}; nftables mode cannot run here: ${obstacle}`;
  return { description, flags: ['--proxy-mode=userspace', ...common], nodeIP, hasOwnNetwork: true };
}

function loopback(reason: string): Stage {
  const flags = [
    '--proxy-mode=userspace',
    nodeName,
    '--nodeport-addresses=127.0.0.0/8,::1/128',
    '--healthz-bind-address=127.0.0.1:10256',
    ...noConntrackSettings,
  ];
  const description = `userspace mode, at loopback addresses of this machine: ${reason}`;
  return { description, flags, nodeIP: '127.0.0.1', hasOwnNetwork: false };
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
