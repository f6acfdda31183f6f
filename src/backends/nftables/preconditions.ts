import type { NftClient } from '../../kernel/nft/client.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import type { Family } from '../../model/ip.ts';
import type { NftablesSettings } from './settings.ts';
import { writeStructure } from './structure.ts';
import { Transaction } from './transaction.ts';

const minimumKernel = [5, 13] as const;
const releaseFile = '/proc/sys/kernel/osrelease';
const skipVariable = 'KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK';

/** One chain of every kind, so that every expression that we use is tried. */
const everyKindOfChain = [
  'cluster-pick-2',
  'split-pick-2-or-pick-local-2',
  'external-nodeport-2',
  'split-sticky-2-60s-or-sticky-local-2-60s',
  'sources-24',
];

/** Throws when the kernel is too old, unless the environment says not to look. */
export function checkKernelVersion(files: SystemFiles, environment: NodeJS.ProcessEnv): void {
  if (environment[skipVariable]) return;
  const release = readRelease(files);
  const [major, minor] = minimumKernel;
  if (release.major > major || (release.major === major && release.minor >= minor)) return;
  throw new Error(`kube-proxy in nftables mode requires kernel ${major}.${minor} or later`);
}

/** Has the kernel validate the whole ruleset of a family, without applying it. */
export async function checkRuleset(client: NftClient, settings: NftablesSettings): Promise<void> {
  const transaction = new Transaction(settings.family);
  const empty = { table: 'other', chains: new Map(), sets: new Set<never>(), elements: new Map() } as const;
  writeStructure(empty, everyKindOfChain, settings, transaction);
  try {
    await client.check(transaction.finish());
  } catch (error) {
    throw new Error(`could not run nftables command: ${text(error)}`, { cause: error });
  }
}

/** Families that this node can serve. IPv4 is taken for granted, as upstream does. */
export function availableFamilies(files: SystemFiles): Set<Family> {
  const isDisabled = tryRead(files, '/proc/sys/net/ipv6/conf/all/disable_ipv6')?.trim() === '1';
  const hasIPv6 = tryRead(files, '/proc/net/if_inet6') !== undefined && !isDisabled;
  return new Set<Family>(hasIPv6 ? ['IPv4', 'IPv6'] : ['IPv4']);
}

function readRelease(files: SystemFiles): { major: number; minor: number } {
  try {
    const release = files.read(releaseFile).trim();
    const match = /^(\d+)\.(\d+)/.exec(release);
    if (!match) throw new Error(`${releaseFile}: ${JSON.stringify(release)} is not a version`);
    return { major: Number(match[1]), minor: Number(match[2]) };
  } catch (error) {
    throw new Error(`could not check kernel version: ${text(error)}`, { cause: error });
  }
}

function tryRead(files: SystemFiles, path: string): string | undefined {
  try {
    return files.read(path);
  } catch {
    // Not there, which is what the caller asks.
    return undefined;
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
