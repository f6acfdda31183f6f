import type { NftClient } from '../../../kernel/nft/client.ts';
import type { Family } from '../../../model/ip.ts';
import { chainsWithRules, type FoundChain } from '../../nft-layout-differences.ts';
import type { PortalElement } from '../portals/elements.ts';
import { portalSet, portalTable, setNames } from '../portals/layout.ts';

/** The table of portals as the kernel has it. */
export interface TableSnapshot {
  readonly family: Family;
  /** By name; empty when there is no table. */
  readonly chains: ReadonlyMap<string, FoundChain>;
  readonly sets: ReadonlySet<string>;
  readonly elements: readonly PortalElement[];
}

/** Rejects with NftError when it may not be read. A table that is not there reads as an empty one. */
export async function readTable(client: NftClient, family: Family): Promise<TableSnapshot> {
  const table = portalTable(family);
  const [chains, rules, sets] = await Promise.all([
    client.listChains(table),
    client.listRules(table),
    client.listSets(table),
  ]);
  const names = new Set(sets.map(({ name }) => name));
  const elements: PortalElement[] = [];
  for (const set of setNames) {
    if (!names.has(set)) continue;
    const begun = elements.length;
    await client.listElements(portalSet(family, set), (some, restarted) => {
      if (restarted) elements.length = begun;
      for (const element of some) elements.push({ set, element });
    });
  }
  return {
    family,
    chains: chainsWithRules(chains, rules),
    sets: names,
    elements,
  };
}
