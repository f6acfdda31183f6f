import { hasNetAdmin } from '../../kernel/capabilities.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import { hasIPv6, isAtLeast, type KernelVersion, kernelVersion } from '../../kernel/probe.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Family } from '../../model/ip.ts';
import type { NftablesSettings } from './settings.ts';
import { writeStructure } from './structure.ts';
import { Transaction } from './transaction.ts';

const minimumKernel = { major: 5, minor: 13 };
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
  if (isAtLeast(runningKernel(files), minimumKernel)) return;
  const { major, minor } = minimumKernel;
  throw new Error(`kube-proxy in nftables mode requires kernel ${major}.${minor} or later`);
}

/** Has the kernel validate a family's whole ruleset without applying it; throws when it refuses. */
export async function checkRuleset(
  client: NftClient,
  settings: NftablesSettings,
  files: SystemFiles,
): Promise<void> {
  const transaction = new Transaction(settings.family);
  const empty = { table: 'other', chains: new Map(), sets: new Set<never>(), elements: new Map() } as const;
  writeStructure(empty, { chains: everyKindOfChain, resetsDeparted: true }, settings, transaction);
  try {
    await client.check(transaction.finish());
  } catch (error) {
    const hint = hasNetAdmin(files) ? '' : ' (CAP_NET_ADMIN is missing)';
    throw new Error(`could not run nftables command: ${messageOf(error)}${hint}`, { cause: error });
  }
}

/** Families that this node can serve. IPv4 is taken for granted, as upstream does. */
export function availableFamilies(files: SystemFiles): Set<Family> {
  return new Set<Family>(hasIPv6(files) ? ['IPv4', 'IPv6'] : ['IPv4']);
}

function runningKernel(files: SystemFiles): KernelVersion {
  try {
    return kernelVersion(files);
  } catch (error) {
    throw new Error(`could not check kernel version: ${messageOf(error)}`, { cause: error });
  }
}
