import type { Commands } from '../../kernel/iptables/commands.ts';
import { type Flavour, flavourOf, flavourOfFile } from '../../kernel/iptables/table-reader.ts';
import { Sysctl } from '../../kernel/sysctl.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import type { NodePortAddresses } from '../../model/node-port-addresses.ts';
import type { Logger } from '../../obs/log.ts';
import { localnetSysctl } from './localnet.ts';

/** The first version whose MASQUERADE knows --random-fully. */
const minimumVersion = [1, 6, 2] as const;

/** The flavour of the program on the PATH. Throws when its version is too old. `fileOf` finds the file of a program. */
export async function checkVersion(
  commands: Commands,
  fileOf: (program: string) => string | undefined,
): Promise<Flavour> {
  const known = flavourOfFile(fileOf(commands.program()));
  if (known) return known;
  const text = await commands.version();
  const version = /\bv(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number);
  if (version && isBefore(version, minimumVersion)) {
    const found = version.join('.');
    throw new Error(
      `${commands.program()} ${found} is too old: ${minimumVersion.join('.')} or later is needed`,
    );
  }
  return flavourOf(text);
}

/** Node ports are served on loopback addresses: wanted, IPv4, and among the node port addresses. */
export function servesLocalhost(wanted: boolean | null, addresses: NodePortAddresses): boolean {
  return (wanted ?? true) && addresses.containsIPv4Loopback;
}

/**
 * Lets packets to 127.0.0.0/8 be routed, without which node ports there cannot work. Returns whether it had to change
 * that. Throws when it is refused.
 */
export function routeLocalnet(files: SystemFiles, logger: Logger): boolean {
  const hasChanged = new Sysctl(files).ensure(localnetSysctl, 1);
  if (hasChanged) {
    logger.info('Set a kernel parameter so that node ports work on loopback addresses', {
      sysctl: localnetSysctl,
      value: 1,
    });
  }
  return hasChanged;
}

/** Whether conntrack accepts packets outside the TCP window; only really invalid packets are then marked invalid. */
export function isConntrackLiberal(files: SystemFiles): boolean {
  return (new Sysctl(files).read('net/netfilter/nf_conntrack_tcp_be_liberal') ?? 0) !== 0;
}

function isBefore(version: readonly number[], minimum: readonly number[]): boolean {
  for (const [i, least] of minimum.entries()) {
    const part = version[i] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}
