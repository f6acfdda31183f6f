import { Commands } from '../../kernel/iptables/commands.ts';
import { type Flavour, legacyTables } from '../../kernel/iptables/table-reader.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { type Family, families } from '../../model/ip.ts';
import type { ProgramContext } from '../iptables-families.ts';
import { canaryChain } from './canary.ts';

function otherThan(flavour: Flavour): Flavour {
  return flavour === 'nft' ? 'legacy' : 'nft';
}

/**
 * Warns once when the flavour not in use holds rules of kube-proxy, too: packets then pass both rule sets, and the
 * other one is outdated or belongs to a program that believes it is alone.
 */
export async function warnOfMix(inUse: Flavour, context: ProgramContext): Promise<void> {
  const alsoFound = otherThan(inUse);
  const found: Record<string, string> = {};
  for (const family of families) {
    const chains = await kubeProxyChains(alsoFound, family, context);
    if (chains.length > 0) found[family] = summary(chains);
  }
  if (Object.keys(found).length === 0) return;
  context.logger.error(
    undefined,
    'Both kinds of iptables hold rules of kube-proxy on this node, and every packet passes both; remove those of ' +
      'the kind that is not in use, with --cleanup or by a restart of the node',
    { inUse, alsoFound, ...found },
  );
}

/** The chains that any version of kube-proxy left in a flavour; none when the flavour is not installed. */
async function kubeProxyChains(
  variant: Flavour,
  family: Family,
  { run, files, clock, logger }: ProgramContext,
): Promise<string[]> {
  if (variant === 'legacy' && !hasLegacyTables(files, family)) return [];
  const commands = new Commands({ family, run, clock, logger, variant });
  try {
    return [...(await commands.kubernetesChains())].filter(isOfKubeProxy);
  } catch (error) {
    logger.v(2).info('Cannot look into a kind of iptables', { variant, reason: String(error) });
    return [];
  }
}

/** To ask the legacy programs would make the kernel create the tables, and send every packet through them. */
export function hasLegacyTables(files: SystemFiles, family: Family): boolean {
  const names = legacyTables(files, family);
  return (['nat', 'filter', 'mangle'] as const).some((table) => names.has(table));
}

/** The kubelet's chains are in whatever flavour it uses; they are not a second set of service rules. */
function isOfKubeProxy(chain: string): boolean {
  return chain === canaryChain || /^KUBE-(SERVICES|NODEPORTS|SVC-|SVL-|EXT-|FW-|SEP-|XLB-)/.test(chain);
}

function summary(chains: readonly string[]): string {
  const shown = chains.slice(0, 5).join(', ');
  return chains.length > 5 ? `${shown} and ${chains.length - 5} more` : shown;
}
