import { chainOf } from './chain-diff.ts';
import type { CompiledService, OwnChains } from './compile.ts';
import { declaration, declarations } from './declarations.ts';
import { filterChains, filterHead, natChains, natHead } from './fixed-rules.ts';
import type { NodeLines } from './node-lines.ts';
import type { IptablesSettings } from './settings.ts';
import type { TableName } from './tables.ts';

/** A service chain that nothing uses any more. It is emptied, and removed unless `keep`. */
export interface StaleChain {
  readonly name: string;
  readonly keep: boolean;
}

/** Which chains to write. A chain is always written whole; those not named stay as they are. */
export interface ChainSelection {
  readonly filter: ReadonlySet<string>;
  readonly nat: ReadonlySet<string>;
  /** By service port key. */
  readonly own: ReadonlyMap<string, OwnChains>;
  readonly stale: readonly StaleChain[];
}

/**
 * Divides what is to be written into restores of about `chainsPerRestore` service chains each. The chains that service ports have
 * to themselves come first; what jumps to them, and what removes others, is left for the last.
 */
export function inParts(
  selection: ChainSelection,
  chainsPerRestore = Number.POSITIVE_INFINITY,
): ChainSelection[] {
  const batches = [new Map<string, OwnChains>()];
  let chains = 0;
  for (const [key, own] of selection.own) {
    if (chains >= chainsPerRestore) {
      batches.push(new Map());
      chains = 0;
    }
    batches.at(-1)?.set(key, own);
    chains += own.declared.length;
  }
  if (batches.length === 1) return [selection];
  const none = new Set<string>();
  // Their rules jump to it.
  const first = new Set([...selection.nat].filter((chain) => chain === 'KUBE-MARK-MASQ'));
  const parts = batches.map((own, i) => ({ filter: none, nat: i === 0 ? first : none, own, stale: [] }));
  return [...parts, { ...selection, own: new Map() }];
}

/** What a line of the input is for. */
export type LineOwner =
  | { readonly kind: 'service'; readonly key: string }
  | { readonly kind: 'removal'; readonly chain: string };

interface Piece {
  readonly lines: readonly string[];
  readonly owner?: LineOwner;
}

/** Large enough that writing is cheap, small enough that it never holds up other work. */
const chunkLength = 32_768;

/** The input of one iptables-restore, generated while it is read. Reading it again yields the same text. */
export class RestoreInput implements Iterable<string> {
  readonly #settings: IptablesSettings;
  readonly #services: Iterable<CompiledService>;
  readonly #node: NodeLines;
  readonly #selection: ChainSelection;

  /** `services` are those whose lines shared chains hold, in order. */
  constructor(
    settings: IptablesSettings,
    services: Iterable<CompiledService>,
    node: NodeLines,
    selection: ChainSelection,
  ) {
    this.#settings = settings;
    this.#services = services;
    this.#node = node;
    this.#selection = selection;
  }

  get isEmpty(): boolean {
    return this.#selection.filter.size === 0 && !this.#mentionsNat;
  }

  /** Chains that the input removes. */
  get removals(): string[] {
    return this.#selection.stale.flatMap(({ name, keep }) => (keep ? [] : [name]));
  }

  *[Symbol.iterator](): Generator<string> {
    let chunk = '';
    for (const { lines } of this.#pieces()) {
      for (const line of lines) chunk += `${line}\n`;
      if (chunk.length < chunkLength) continue;
      yield chunk;
      chunk = '';
    }
    if (chunk !== '') yield chunk;
  }

  /** Rules that the input writes into each table; removed chains do not count. */
  countRules(): Record<TableName, number> {
    const counts = { filter: 0, nat: 0 };
    const { filter, nat, own } = this.#selection;
    const { filterTail, natTail } = this.#node;
    const count = (lines: readonly string[], chains: ReadonlySet<string>) => within(lines, chains).length;
    counts.filter += count(filterHead(this.#settings), filter) + count(filterTail, filter);
    counts.nat += count(natHead(this.#settings), nat) + count(natTail, nat);
    if (filter.size > 0 || nat.size > 0) {
      for (const { dispatch } of this.#services) {
        counts.filter += count(dispatch.filter, filter);
        counts.nat += count(dispatch.nat, nat);
      }
    }
    for (const chains of own.values()) counts.nat += chains.count;
    return counts;
  }

  /** What a line, counted from 1, is for; undefined for lines that all service ports share. */
  ownerOf(line: number): LineOwner | undefined {
    let before = 0;
    for (const { lines, owner } of this.#pieces()) {
      before += lines.length;
      if (line <= before) return owner;
    }
    return undefined;
  }

  get #mentionsNat(): boolean {
    const { nat, own, stale } = this.#selection;
    return nat.size > 0 || own.size > 0 || stale.length > 0;
  }

  *#pieces(): Generator<Piece> {
    if (this.#selection.filter.size > 0) yield* this.#filterPieces();
    if (this.#mentionsNat) yield* this.#natPieces();
  }

  *#filterPieces(): Generator<Piece> {
    const { filter } = this.#selection;
    const chains = filterChains(this.#settings).filter((chain) => filter.has(chain));
    yield { lines: ['*filter', ...chains.map(declaration)] };
    yield { lines: within(filterHead(this.#settings), filter) };
    for (const { key, dispatch } of this.#services) {
      const lines = within(dispatch.filter, filter);
      if (lines.length > 0) yield { lines, owner: { kind: 'service', key } };
    }
    yield { lines: [...within(this.#node.filterTail, filter), 'COMMIT'] };
  }

  *#natPieces(): Generator<Piece> {
    const { nat, stale } = this.#selection;
    yield { lines: ['*nat', ...natChains.filter((chain) => nat.has(chain)).map(declaration)] };
    for (const lines of declarations(this.#serviceChains())) yield { lines };
    yield { lines: within(natHead(this.#settings), nat) };
    yield* this.#servicePieces();
    for (const { name: chain, keep } of stale) {
      if (!keep) yield { lines: [`-X ${chain}`], owner: { kind: 'removal', chain } };
    }
    yield { lines: [...within(this.#node.natTail, nat), 'COMMIT'] };
  }

  *#serviceChains(): Generator<string> {
    const { own, stale } = this.#selection;
    for (const { declared } of own.values()) yield* declared;
    for (const { name } of stale) yield name;
  }

  /** The lines of each service port in shared chains, then those in its own. */
  *#servicePieces(): Generator<Piece> {
    const { nat, own } = this.#selection;
    if (nat.size === 0) {
      for (const [key, chains] of own) yield { lines: chains.rules(), owner: { kind: 'service', key } };
      return;
    }
    for (const { key, dispatch } of this.#services) {
      const lines = [...within(dispatch.nat, nat), ...(own.get(key)?.rules() ?? [])];
      if (lines.length > 0) yield { lines, owner: { kind: 'service', key } };
    }
  }
}

/** Those of the rules that are in one of the chains. */
function within(rules: readonly string[], chains: ReadonlySet<string>): readonly string[] {
  const isIn = (rule: string) => chains.has(chainOf(rule));
  return rules.every(isIn) ? rules : rules.filter(isIn);
}
