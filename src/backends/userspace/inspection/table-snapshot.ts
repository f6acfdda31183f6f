import type { NftClient } from '../../../kernel/nft/client.ts';
import type { BaseChain, Element, Rule } from '../../../kernel/nft/objects.ts';
import type { Family } from '../../../model/ip.ts';
import { portalSet, portalTable, type SetName } from '../portals/layout.ts';

export interface HeldChain {
  readonly name: string;
  readonly base: BaseChain | undefined;
  readonly rules: readonly Rule[];
}

/** The table of portals as the kernel has it. Elements are read when they are first asked for. */
export class TableSnapshot {
  readonly family: Family;
  /** By name; empty when there is no table. */
  readonly chains: ReadonlyMap<string, HeldChain>;
  readonly sets: ReadonlySet<string>;
  readonly #client: NftClient;
  readonly #elements = new Map<SetName, Promise<readonly Element[]>>();

  /** Rejects with NftError when it may not be read. A table that is not there reads as an empty one. */
  static async read(client: NftClient, family: Family): Promise<TableSnapshot> {
    const table = portalTable(family);
    const [chains, rules, sets] = await Promise.all([
      client.listChains(table),
      client.listRules(table),
      client.listSets(table),
    ]);
    const byChain = Map.groupBy(rules, ({ chain }) => chain.name);
    const held = chains.map(({ name, base }) => ({ name, base, rules: byChain.get(name) ?? [] }));
    return new TableSnapshot(client, family, held, new Set(sets.map(({ name }) => name)));
  }

  private constructor(
    client: NftClient,
    family: Family,
    chains: readonly HeldChain[],
    sets: ReadonlySet<string>,
  ) {
    this.#client = client;
    this.family = family;
    this.chains = new Map(chains.map((chain) => [chain.name, chain]));
    this.sets = sets;
  }

  elements(set: SetName): Promise<readonly Element[]> {
    const known = this.#elements.get(set) ?? this.#readElements(set);
    this.#elements.set(set, known);
    return known;
  }

  async #readElements(set: SetName): Promise<readonly Element[]> {
    if (!this.sets.has(set)) return [];
    let elements: Element[] = [];
    await this.#client.listElements(portalSet(this.family, set), (some, restarted) => {
      if (restarted) elements = [];
      elements.push(...some);
    });
    return elements;
  }
}
