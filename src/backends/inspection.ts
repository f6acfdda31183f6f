import type { Family } from '../model/ip.ts';
import type { Protocol } from '../model/objects.ts';
import type { ServicePlan } from '../plan/service-plan.ts';
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

/**
 * How a packet gets to its endpoint, which decides about the hooks of the kernel that it passes. `mark` has the bits that
 * the proxy sets in the mark of packets that it masquerades.
 */
export type Delivery =
  | { readonly kind: 'rewritten' | 'virtual server'; readonly mark: number }
  /** A process of this node accepts it at `at` (`ip:port`), and makes a connection to the endpoint. */
  | { readonly kind: 'listener'; readonly at: string };

/** A client that goes to the same endpoint again. */
export interface Binding {
  readonly endpoint: string;
  /** When it ends without another connection. */
  readonly secondsLeft: number;
}

/** A client that affinity binds to an endpoint of a service port. */
export interface ClientBinding extends Binding {
  /** Key of the service port. */
  readonly service: string;
  readonly client: string;
  /** The frontend that it holds for, `ip:port`; undefined when it holds for all frontends. */
  readonly frontend?: string;
}

/** Receives bindings while they are read. */
export interface BindingSink {
  add(binding: ClientBinding): void;
  /** A change disturbed the reading, and it starts again: forget all bindings so far. */
  clear(): void;
}

/** The fate of a packet by the current state of the kernel, or of the forwarder of this process. */
export interface KernelAnswer {
  readonly fate: Fate;
  /** What was read for the answer: `table ip kube-proxy`. */
  readonly lookedAt: string;
  /** Present when the packet is forwarded. */
  readonly delivery?: Delivery;
  /** The endpoint that client affinity binds the client to: the only target then. */
  readonly bound?: Binding;
  /** Present when later packets of the connection skip the rules: the number of packets before. */
  readonly fastPathAfter?: number;
  /** The map elements, rules or entries on the packet's way, in its order, as the usual tools print them. */
  readonly evidence: readonly string[];
}

/** The part of an answer that following the packet through rules yields. */
export type FollowedPacket = Pick<KernelAnswer, 'fate' | 'evidence' | 'bound'>;

/** Completes an answer; `delivery` counts only when the packet is forwarded. */
export function answered(followed: FollowedPacket, lookedAt: string, delivery: Delivery): KernelAnswer {
  return { ...followed, lookedAt, ...(followed.fate.action === 'forward' && { delivery }) };
}

/** The binding of a client with this fate; none unless exactly one endpoint is possible. */
export function boundTo(fate: Fate, secondsLeft: number | undefined): { readonly bound?: Binding } {
  if (secondsLeft === undefined || fate.action !== 'forward') return {};
  const [target, ...others] = fate.targets;
  if (!target || others.length > 0) return {};
  return { bound: { endpoint: target.endpoint, secondsLeft: Math.max(0, Math.round(secondsLeft)) } };
}

/** A base chain of nf_tables that the proxy did not write, or not alone. */
export interface OtherChain {
  /** `inet filter`. */
  readonly table: string;
  readonly chain: string;
  readonly hook: string;
  readonly priority: number;
  readonly policy: 'accept' | 'drop';
}

/** What in a chain may stop a packet. */
export interface ObstacleCause {
  /** `unknown`: a statement that may stop it and is not understood. */
  readonly action: 'drop' | 'reject' | 'unknown';
  /** The chain with the rule. */
  readonly chain: string;
  /** As `nft -a list ruleset` shows it. Null when it is the policy of the base chain. */
  readonly handle: number | null;
  readonly comment: string | null;
}

/** A base chain of another program that stops a packet, or may stop it. */
export interface Obstacle extends OtherChain {
  /** `possible`: it depends on rules that are not understood, or on facts that are not known. */
  readonly certainty: 'certain' | 'possible';
  /** The first of the possible causes, and how many there are. */
  readonly causes: readonly ObstacleCause[];
  readonly causeCount: number;
  /** Rules on the way of which it is not known whether they match. */
  readonly unclearRules: number;
  /** The endpoints that it stops packets to; null for every one. */
  readonly endpoints: readonly string[] | null;
}

/** What rules of other programs do with a packet that the proxy lets pass. */
export interface OtherRules {
  /** The base chains on the way that were looked at, in the order in which the packet passes them. */
  readonly lookedAt: readonly OtherChain[];
  readonly obstacles: readonly Obstacle[];
  /** What might stop the packet and was not looked at. */
  readonly notLookedAt: readonly string[];
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

/**
 * Inspects what one mode has written in one family. Only reads, over sockets of its own. No sync waits for it, so slow
 * answers are fine.
 */
export interface Inspection {
  ask(packet: Packet): Promise<KernelAnswer>;
  /** Everything that a sync of this request would change; empty when the kernel agrees with the plans. */
  compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]>;
  /** Reads which clients affinity binds to the endpoints of these plans now, without blocking the event loop. */
  bindings(plans: readonly ServicePlan[], sink: BindingSink): Promise<void>;
  close(): Promise<void>;
}
