import { Commands } from '../../kernel/iptables/commands.ts';
import { type Flavour, flavourOf } from '../../kernel/iptables/table-reader.ts';
import { hasIPv6 } from '../../kernel/probe.ts';
import { Sysctl } from '../../kernel/sysctl.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { messageOf } from '../../lib/thrown.ts';
import { type Family, families } from '../../model/ip.ts';
import type { NodePortAddresses } from '../../model/node-port-addresses.ts';
import type { Logger } from '../../obs/log.ts';
import type { FlavourContext } from './flavour.ts';

const flavours: readonly Flavour[] = ['legacy', 'nft'];
/** The first version whose MASQUERADE knows --random-fully. */
const minimumVersion = [1, 6, 2] as const;

/** Families whose rules this node can hold; throws, with the reasons, when there is none. */
export async function availableFamilies(context: FlavourContext): Promise<Set<Family>> {
  const available = new Set<Family>();
  const reasons: string[] = [];
  for (const family of families) {
    const reason = await unavailable(family, context);
    if (reason === undefined) {
      available.add(family);
      continue;
    }
    reasons.push(reason);
    context.logger.info('No iptables support for an IP family', { ipFamily: family, reason });
  }
  if (available.size > 0) return available;
  throw new Error(`iptables is not available on this host: ${reasons.join('; ')}`);
}

/** The flavour of the program on the PATH. Throws when its version is too old. */
export async function checkVersion(commands: Commands): Promise<Flavour> {
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

/** Lets packets to 127.0.0.0/8 be routed, without which node ports there cannot work. Throws when that is refused. */
export function routeLocalnet(files: SystemFiles, logger: Logger): void {
  const name = 'net/ipv4/conf/all/route_localnet';
  if (new Sysctl(files).ensure(name, 1)) {
    logger.info('Set a kernel parameter so that node ports work on loopback addresses', {
      sysctl: name,
      value: 1,
    });
  }
}

/** Whether conntrack accepts packets outside the TCP window; only really invalid packets are then marked invalid. */
export function isConntrackLiberal(files: SystemFiles): boolean {
  return (new Sysctl(files).read('net/netfilter/nf_conntrack_tcp_be_liberal') ?? 0) !== 0;
}

/** Why a family cannot be served; undefined when it can. */
async function unavailable(family: Family, context: FlavourContext): Promise<string | undefined> {
  if (family === 'IPv6' && !hasIPv6(context.files)) return 'this kernel has no IPv6, or it is switched off';
  const reason = await failureOf(new Commands({ family, ...context }));
  if (reason === undefined) return undefined;
  for (const variant of flavours) {
    const other = new Commands({ family, variant, ...context });
    if ((await failureOf(other)) === undefined) {
      return `${reason} (${other.program()} works here: it should be what ${other.program().split('-')[0]} is)`;
    }
  }
  return reason;
}

async function failureOf(commands: Commands): Promise<string | undefined> {
  try {
    await commands.rules('nat', 'POSTROUTING');
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function isBefore(version: readonly number[], minimum: readonly number[]): boolean {
  for (const [i, least] of minimum.entries()) {
    const part = version[i] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}
