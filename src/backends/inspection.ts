import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { SyncRequest } from './backend.ts';

/** The first packet of a connection, as it meets this node. Addresses are canonical and of one family. */
export interface Packet {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  /** Made by the node itself, or received by the interface of that name; '' where that is not known. */
  readonly origin: 'node' | { readonly interface: string };
}

/** One endpoint that a packet may be sent to. */
export interface Target {
  /** `ip:port`, IPv6 in brackets. */
  readonly endpoint: string;
  /** Between 0 and 1; those of one fate sum up to 1. */
  readonly probability: number;
  /** The endpoint sees an address of the node in place of the client's. */
  readonly masquerade: boolean;
}

/**
 * What becomes of a packet. `pass`: no service is concerned with it, it takes the way it would take without a proxy.
 * `targets` are sorted by endpoint.
 */
export type Fate =
  | { readonly action: 'forward'; readonly targets: readonly Target[]; readonly affinitySeconds: number }
  | { readonly action: 'drop' | 'reject' | 'pass' };

/** What the kernel (or the forwarder of this process) does with a packet, read from what it holds now. */
export interface KernelAnswer {
  readonly fate: Fate;
  /** The map elements, rules or entries that lead there, in the packet's order, as the usual tools print them. */
  readonly evidence: readonly string[];
}

/** One thing that is not in the kernel as it should be. */
export interface Difference {
  /** Key of the service port it belongs to; undefined for what is shared by all. */
  readonly service: string | undefined;
  /** What kind of thing, and which: `element` `frontends 10.96.0.1 . tcp . 80`, `chain` `nat KUBE-SVC-…`. */
  readonly kind: string;
  readonly object: string;
  /** How it should be, and how it is; undefined where it should not be there, or is not. */
  readonly wanted: string | undefined;
  readonly found: string | undefined;
}

/** What the kernel counted for one service port since some moment; what it does not count is undefined. */
export interface ServiceCounters {
  readonly service: string;
  readonly connections: number | undefined;
  readonly packets: number | undefined;
  readonly bytes: number | undefined;
}

/**
 * Looks at what one mode has written in one family. Reads only, over sockets of its own, and never while a sync waits
 * for it: slow answers are fine.
 */
export interface Inspection {
  ask(packet: Packet): Promise<KernelAnswer>;
  /** Everything that a sync of this request would write: empty when the kernel holds just that. */
  compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]>;
  /** Undefined where the mode has no counters per service. The plans say whose the counters are, where needed. */
  counters?(request: Pick<SyncRequest, 'plans'>): Promise<readonly ServiceCounters[]>;
  close(): Promise<void>;
}
