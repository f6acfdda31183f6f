import type { Chain, Counter, Element, Rule, SetInfo, SetRef, Table } from './objects.ts';

/** Who made a change: the netlink port of the sender, 0 for the kernel itself (expiry, namespace exit). */
export interface EventOrigin {
  readonly portId: number;
}

/**
 * A change of the ruleset, told after it was committed. Everything of one transaction comes in order and ends with
 * a `generation` event, the only one that says which process it was.
 */
export type NftEvent = EventOrigin &
  (
    | { readonly type: 'new' | 'delete'; readonly kind: 'table'; readonly object: Table }
    | { readonly type: 'new' | 'delete'; readonly kind: 'chain'; readonly object: Chain }
    | { readonly type: 'new' | 'delete'; readonly kind: 'rule'; readonly object: Rule }
    | { readonly type: 'new' | 'delete'; readonly kind: 'set'; readonly object: SetInfo }
    | { readonly type: 'new' | 'delete'; readonly kind: 'counter'; readonly object: Counter }
    | {
        readonly type: 'new' | 'delete';
        readonly kind: 'element';
        readonly set: SetRef;
        readonly elements: readonly Element[];
      }
    | {
        readonly type: 'generation';
        readonly id: number;
        /** Thread id of the committer in the initial pid namespace. */
        readonly pid: number;
        readonly processName: string;
      }
  );

export interface NftEventListener {
  event(event: NftEvent): void;
  /** Events were lost, or one could not be read: whatever was derived from them must be read anew. */
  overrun(): void;
  /** The subscription ended by itself and will deliver nothing more. */
  failed(error: Error): void;
}
