import type { Family } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';

/** What a leftover is, in the singular, for people. */
export type LeftoverKind =
  | 'nf_tables table'
  | 'iptables chain'
  | 'iptables rule'
  | 'IPVS virtual server'
  | 'network device'
  | 'ipset'
  | 'kernel parameter';

/** Something that a proxy mode, of this program or of upstream, left in the kernel. */
export interface Leftover {
  readonly kind: LeftoverKind;
  readonly family?: Family;
  /** Where it is, when a name says too little: `table nat (iptables-nft)`. */
  readonly place?: string;
  /** Rules are named after their chain. */
  readonly name: string;
  /** More than 1 for rules of one chain. */
  readonly count: number;
  /** Why a clean-up leaves it on purpose. */
  readonly kept?: string;
  /** Why it cannot be removed here. */
  readonly stuck?: string;
}

export interface LeftoverContext {
  readonly logger: Logger;
  /**
   * A `clean-up` removes everything. A `take-over` removes what a mode left that another mode replaces: kernel
   * parameters stay, because open connections may need them.
   */
  readonly scope: 'clean-up' | 'take-over';
}

/** What a mode left, found by looking at the kernel, and how to remove it. */
export interface LeftoverSource {
  /** Lists what is there; changes nothing. Throws when the kernel cannot be asked. */
  find(context: LeftoverContext): Promise<readonly Leftover[]>;
  /** Removes all that `find` lists without `kept` or `stuck`. Tries every step; throws the first failure at the end. */
  remove(context: LeftoverContext): Promise<void>;
}

/** Several sources as one, in this order. */
export function joined(...sources: readonly LeftoverSource[]): LeftoverSource {
  return {
    async find(context) {
      const lists: (readonly Leftover[])[] = [];
      for (const source of sources) lists.push(await source.find(context));
      return lists.flat();
    },
    remove: (context) => inTurn(sources.map((source) => () => source.remove(context))),
  };
}

/** Takes every step, also after a failure; then throws the first failure. */
export async function inTurn(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw failures[0];
}
