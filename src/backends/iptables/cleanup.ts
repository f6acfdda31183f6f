import { CommandError } from '../../kernel/iptables/command-error.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { type Flavour, flavourOf } from '../../kernel/iptables/table-reader.ts';
import { type Family, families } from '../../model/ip.ts';
import type { ProgramContext } from '../iptables-families.ts';
import { chainNames, removeJumps } from '../jumps.ts';
import { canaryChain } from './canary.ts';
import { kubeProxyChains, otherThan } from './flavour.ts';
import { ownJumps } from './jumps.ts';
import { isServiceChain } from './names.ts';
import type { TableName } from './tables.ts';

/** In the order in which they are removed. KUBE-FIREWALL stays: the kubelet uses it too. */
const fixedChains: Readonly<Record<TableName, readonly string[]>> = {
  nat: ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ', canaryChain],
  filter: [
    'KUBE-SERVICES',
    'KUBE-EXTERNAL-SERVICES',
    'KUBE-FORWARD',
    'KUBE-NODEPORTS',
    'KUBE-PROXY-FIREWALL',
    canaryChain,
  ],
};

/** Releases before 1.24 had such chains, which lead to those of services and so would hold on to them. */
const retiredPrefix = 'KUBE-XLB-';

/**
 * Removes everything of this mode, from both flavours and families; nothing there is success. Every step is tried; a
 * failure is thrown at the end.
 */
export async function removeAll(context: ProgramContext): Promise<void> {
  const failures: unknown[] = [];
  for (const family of families) {
    for (const commands of await programsWithRules(family, context)) {
      failures.push(...(await removeFrom(commands, context)));
    }
  }
  if (failures.length > 0) throw failures[0];
}

/**
 * Programs of both flavours that hold rules of kube-proxy. On most starts there are none, and one listing shows that.
 */
async function programsWithRules(family: Family, context: ProgramContext): Promise<Commands[]> {
  const programs: Commands[] = [];
  const main = new Commands({ family, ...context });
  const left = await main.leftoverChains();
  if (left && [...left].some(isRemoved)) programs.push(main);
  const others: readonly Flavour[] = left ? [otherThan(flavourOf(await main.version()))] : ['legacy', 'nft'];
  for (const variant of others) {
    const chains = await kubeProxyChains(variant, family, context);
    if (chains.length > 0) programs.push(new Commands({ family, variant, ...context }));
  }
  return programs;
}

function isRemoved(chain: string): boolean {
  return isOfService(chain) || Object.values(fixedChains).some((chains) => chains.includes(chain));
}

async function removeFrom(commands: Commands, { logger }: ProgramContext): Promise<unknown[]> {
  const failures: unknown[] = [];
  const attempt = async (what: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (error) {
      failures.push(error);
      logger.error(error, 'Failed to remove rules', { ipFamily: commands.family, what });
    }
  };
  await attempt('jumps', () => removeJumps(commands, ownJumps));
  await attempt('table nat', () => removeChains(commands, 'nat'));
  await attempt('table filter', () => removeChains(commands, 'filter'));
  await removeMangleCanary(commands);
  return failures;
}

/** All chains of a table in one go: they refer to each other. */
async function removeChains(commands: Commands, table: TableName): Promise<void> {
  const existing = await chainNames(commands, table);
  const service = table === 'nat' ? [...existing].filter(isOfService).sort() : [];
  const chains = [...fixedChains[table].filter((chain) => existing.has(chain)), ...service];
  // Even an empty input would make the kernel create the table.
  if (chains.length === 0) return;
  await commands.restore(
    [
      `*${table}\n`,
      ...chains.map((chain) => `:${chain} - [0:0]\n`),
      ...chains.map((chain) => `-X ${chain}\n`),
      'COMMIT\n',
    ],
    table,
  );
}

async function removeMangleCanary(commands: Commands): Promise<void> {
  try {
    await commands.deleteChain('mangle', canaryChain);
  } catch (error) {
    // Nothing refers to the chain: it does no harm.
    if (!(error instanceof CommandError)) throw error;
  }
}

function isOfService(chain: string): boolean {
  return isServiceChain(chain) || chain.startsWith(retiredPrefix);
}
