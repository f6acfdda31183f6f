import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { SyncRequest } from './backend.ts';

/** The first packet of a connection, when it reaches this node. Addresses are canonical and of one family. */
export interface Packet {
  readonly family: Family;
  readonly protocol: Protocol;
  readonly source: string;
  readonly destination: string;
  readonly port: number;
  /** Sent by the node itself, or received on the interface of that name; '' when that is unknown. */
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
 * The fate of a packet. `pass`: no service has the destination, and the packet is routed as if there were no proxy.
 * `targets` are sorted by endpoint.
 */
export type Fate =
  | { readonly action: 'forward'; readonly targets: readonly Target[]; readonly affinitySeconds: number }
  | { readonly action: 'drop' | 'reject' | 'pass' };

/** The fate of a packet by the current state of the kernel, or of the forwarder of this process. */
export interface KernelAnswer {
  readonly fate: Fate;
  /** The map elements, rules or entries on the packet's way, in its order, as the usual tools print them. */
  readonly evidence: readonly string[];
}

/** One object that differs between the kernel and the plans. */
export interface Difference {
  /** Key of the service port that owns it; undefined for a shared object. */
  readonly service: string | undefined;
  /** For example `element` and `frontends 10.96.0.1 . tcp . 80`, or `chain` and `nat KUBE-SVC-…`. */
  readonly kind: string;
  readonly object: string;
  /** The wanted and the actual state; undefined when it should not be there, or is not there. */
  readonly wanted: string | undefined;
  readonly found: string | undefined;
}

/** The counters of one service port since some moment; undefined where the mode does not count. */
export interface ServiceCounters {
  readonly service: string;
  readonly connections: number | undefined;
  readonly packets: number | undefined;
  readonly bytes: number | undefined;
}

/**
 * Inspects what one mode has written in one family. Only reads, over sockets of its own. No sync waits for it, so slow
 * answers are fine.
 */
export interface Inspection {
  ask(packet: Packet): Promise<KernelAnswer>;
  /** Everything that a sync of this request would change; empty when the kernel agrees with the plans. */
  compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]>;
  /** Undefined in a mode without counters per service. A mode may need the plans to find the owner of a counter. */
  counters?(request: Pick<SyncRequest, 'plans'>): Promise<readonly ServiceCounters[]>;
  close(): Promise<void>;
}
