import type { Chain, Counter, Element, Flowtable, Rule, SetInfo, SetRef, Table } from './objects.ts';

/** The netlink port of the program that made a change; 0 for the kernel itself (expiry, namespace exit). */
export interface EventOrigin {
  readonly portId: number;
}

/**
 * A committed change of the ruleset. The events of one transaction come in order and end with a `generation` event, the
 * only one that names the process.
 */
export type NftEvent = EventOrigin &
  (
    | { readonly type: 'new' | 'delete'; readonly kind: 'table'; readonly object: Table }
    | { readonly type: 'new' | 'delete'; readonly kind: 'chain'; readonly object: Chain }
    | { readonly type: 'new' | 'delete'; readonly kind: 'rule'; readonly object: Rule }
    | { readonly type: 'new' | 'delete'; readonly kind: 'set'; readonly object: SetInfo }
    | { readonly type: 'new' | 'delete'; readonly kind: 'counter'; readonly object: Counter }
    | { readonly type: 'new' | 'delete'; readonly kind: 'flowtable'; readonly object: Flowtable }
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
  /** Events were lost or unreadable: the caller must read again what it derived from events. */
  overrun(): void;
  /** The subscription failed and delivers nothing more. */
  failed(error: Error): void;
}
