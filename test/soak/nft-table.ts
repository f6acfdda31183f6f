import { runInNode } from '../contract/node-commands.ts';

type Json = unknown;

interface NftSet {
  readonly name: string;
  readonly elem?: readonly Json[];
}

interface NftRule {
  readonly chain: string;
  readonly expr: readonly Json[];
}

interface NftChain {
  readonly name: string;
  readonly hook?: string;
  readonly prio?: number;
  readonly policy?: string;
}

type NftObject = {
  readonly set?: NftSet;
  readonly map?: NftSet;
  readonly rule?: NftRule;
  readonly chain?: NftChain;
};

/** An element of a set or map: its parts, and its value in a map. */
export interface Element {
  readonly key: readonly string[];
  readonly value: string;
}

/** A table as nft lists it: chains with their rules, sets and maps with their elements. */
export class NftTable {
  readonly sets = new Map<string, readonly Element[]>();
  readonly #rules = new Map<string, string[]>();
  readonly #bases: string[] = [];

  static async list(family: string, name: string): Promise<NftTable> {
    const { nftables } = JSON.parse(await runInNode('nft', '-j', 'list', 'table', family, name)) as {
      nftables: NftObject[];
    };
    return new NftTable(nftables);
  }

  private constructor(objects: readonly NftObject[]) {
    for (const { set, map, rule, chain } of objects) {
      if (chain) this.#addChain(chain);
      const elements = set ?? map;
      if (elements)
        this.sets.set(
          elements.name,
          (elements.elem ?? []).map((each) => elementOf(each, map !== undefined)),
        );
      if (rule) this.#rules.get(rule.chain)?.push(JSON.stringify(rule.expr));
    }
  }

  elements(set: string): readonly Element[] {
    return this.sets.get(set) ?? [];
  }

  /** The rules of all chains that packets can reach from base chains, but not `idle` ones, and from these verdicts. */
  reachableRules(verdicts: readonly string[], idle: readonly string[] = []): string[] {
    const bases = this.#bases.filter((name) => !idle.includes(name));
    const reached = new Set<string>();
    const reach = (chain: string): void => {
      if (reached.has(chain)) return;
      reached.add(chain);
      for (const rule of this.#rules.get(chain) ?? []) for (const target of targetsOf(rule)) reach(target);
    };
    for (const chain of [...bases, ...verdicts.flatMap(targetsOf)]) reach(chain);
    return [...reached]
      .sort()
      .flatMap((chain) => (this.#rules.get(chain) ?? []).map((rule) => `chain ${chain}: ${rule}`));
  }

  #addChain({ name, hook, prio, policy }: NftChain): void {
    this.#rules.set(name, hook === undefined ? [] : [`hook ${hook} priority ${prio} policy ${policy}`]);
    if (hook !== undefined) this.#bases.push(name);
  }
}

function targetsOf(json: string): string[] {
  return [...json.matchAll(/"(?:goto|jump)":\{"target":"([^"]+)"/g)].map(([, target = '']) => target);
}

function elementOf(json: Json, isMap: boolean): Element {
  const [key, value] = isMap ? (json as [Json, Json]) : [json, ''];
  return { key: partsOf(key), value: partsOf(value).join(' . ') };
}

function partsOf(json: Json): string[] {
  if (typeof json !== 'object' || json === null) return [String(json)];
  if ('elem' in json) return partsOf((json.elem as { val: Json }).val);
  if ('concat' in json) return (json.concat as Json[]).flatMap(partsOf);
  return [JSON.stringify(json)];
}
