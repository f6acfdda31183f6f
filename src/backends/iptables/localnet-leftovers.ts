import { removeTable, tableExists } from '../../kernel/nft/remove-table.ts';
import { Sysctl } from '../../kernel/sysctl.ts';
import {
  type ChainContext,
  type FoundTable,
  findChains,
  type OwnChains,
  readTables,
  removeChains,
  ruleTexts,
  withKernel,
} from '../chain-leftovers.ts';
import { kubeletChains, localnetComment, sharedChain } from '../kubelet-chains.ts';
import { inTurn, type Leftover, type LeftoverSource } from '../leftovers.ts';
import { localnetMark, localnetSysctl } from './localnet.ts';

/** As people write it. */
const parameter = localnetSysctl.replaceAll('/', '.');

/**
 * The kernel parameter for node ports on loopback addresses, and KUBE-FIREWALL, both of which the kubelet and upstream
 * use, too: docs/decisions/0006-localnet.md. Only a clean-up looks at them.
 */
export const localnetLeftovers: LeftoverSource = {
  async find({ scope, logger }) {
    return scope === 'clean-up' ? withKernel(logger, findLocalnet) : [];
  },
  async remove({ scope, logger }) {
    if (scope === 'clean-up') await withKernel(logger, removeLocalnet);
  },
};

/** What is there, and why each part has to stay. */
interface Localnet {
  /** Packets to 127.0.0.0/8 are routed. */
  readonly isRouted: boolean;
  /** This program made it so. */
  readonly isMarked: boolean;
  readonly hasKubelet: boolean;
  readonly firewalls: readonly Firewall[];
}

/** KUBE-FIREWALL in one table. */
interface Firewall {
  readonly table: FoundTable;
  /** Whether it has the rule that protects loopback. */
  readonly isProtecting: boolean;
  /** What shows that another program uses it, too. */
  readonly otherUse: string | undefined;
}

export async function findLocalnet(context: ChainContext): Promise<Leftover[]> {
  const state = await readLocalnet(context);
  const found: Leftover[] = [];
  const reason = parameterReason(state);
  const isOurs = state.isMarked || state.firewalls.some(({ isProtecting }) => isProtecting);
  if (state.isRouted && isOurs) {
    found.push({
      kind: 'kernel parameter',
      name: `${parameter}=1`,
      count: 1,
      ...kept(reason),
    });
  }
  if (state.isMarked) found.push(markLeftover(willBeRouted(state)));
  for (const firewall of state.firewalls) {
    const list = await findChains(isFirewallOf([firewall]), context);
    const stays = kept(firewallReason(firewall, state, willBeRouted(state)));
    found.push(...list.map((leftover) => ({ ...leftover, ...stays })));
  }
  return found;
}

/** The parameter goes first: without it KUBE-FIREWALL has nothing to protect. */
export async function removeLocalnet(context: ChainContext): Promise<void> {
  await inTurn([
    async () => {
      const state = await readLocalnet(context);
      if (state.isRouted && parameterReason(state) === undefined)
        new Sysctl(context.files).write(localnetSysctl, 0);
    },
    async () => {
      const state = await readLocalnet(context);
      const removable = state.firewalls.filter(
        (firewall) => firewallReason(firewall, state, state.isRouted) === undefined,
      );
      await removeChains(isFirewallOf(removable), context);
      if (!state.isRouted) await removeTable(context.kernel.nft, localnetMark);
    },
  ]);
}

/** Why the parameter stays; undefined when a clean-up sets it to 0. */
function parameterReason({ isMarked, hasKubelet }: Localnet): string | undefined {
  if (!isMarked) return 'nothing shows that this program set it, and others may need it';
  return hasKubelet ? 'a kubelet runs here, which may need it' : undefined;
}

function willBeRouted(state: Localnet): boolean {
  return state.isRouted && parameterReason(state) !== undefined;
}

/** Why KUBE-FIREWALL stays; undefined when it is ours alone and no longer needed. */
function firewallReason(firewall: Firewall, state: Localnet, isRouted: boolean): string | undefined {
  if (state.hasKubelet) return 'the kubelet uses it, too';
  if (firewall.otherUse !== undefined) return firewall.otherUse;
  if (!isRouted || !firewall.isProtecting) return undefined;
  return `it keeps other machines from loopback addresses while ${parameter} is 1`;
}

async function readLocalnet(context: ChainContext): Promise<Localnet> {
  const isInteresting: OwnChains = (table, chain) =>
    kubeletChains.includes(chain) || isFirewallChain(table, chain);
  const tables = await readTables(isInteresting, context);
  const firewalls: Firewall[] = [];
  for (const table of tables) {
    if (table.name === 'filter' && table.chains.has(sharedChain))
      firewalls.push(await readFirewall(table, context));
  }
  return {
    isRouted: new Sysctl(context.files).read(localnetSysctl) === 1,
    isMarked: await tableExists(context.kernel.nft, localnetMark),
    hasKubelet: tables.some(({ chains }) => kubeletChains.some((name) => chains.has(name))),
    firewalls,
  };
}

async function readFirewall(table: FoundTable, context: ChainContext): Promise<Firewall> {
  const texts = await ruleTexts(table, sharedChain, context);
  const own = texts.filter((text) => text.includes(localnetComment));
  const hasOthers = texts.length > own.length || own.length > 1;
  const from = [...table.chains].find(
    ([chain, rules]) => !['INPUT', 'OUTPUT'].includes(chain) && rules.some(({ to }) => to === sharedChain),
  );
  const otherUse = hasOthers
    ? 'it has rules of another program'
    : from && `a rule of chain ${from[0]} leads to it`;
  return { table, isProtecting: own.length > 0, otherUse };
}

function markLeftover(isNeeded: boolean): Leftover {
  const { family, name } = localnetMark;
  const stays = kept(isNeeded ? 'it shows that this program set the kernel parameter' : undefined);
  return { kind: 'nf_tables table', family: 'IPv4', name: `${family} ${name}`, count: 1, ...stays };
}

function isFirewallChain(table: string, chain: string): boolean {
  return table === 'filter' && chain === sharedChain;
}

function isFirewallOf(firewalls: readonly Firewall[]): OwnChains {
  const isThere = (family: string, flavour: string) =>
    firewalls.some(({ table }) => table.family === family && table.flavour === flavour);
  return (table, chain, { family, flavour }) => isFirewallChain(table, chain) && isThere(family, flavour);
}

function kept(reason: string | undefined): { readonly kept?: string } {
  return reason === undefined ? {} : { kept: reason };
}
