import type { Family } from '../../model/ip.ts';

/** One direction of a tracked flow. Addresses are in network order, 4 or 16 bytes. */
export interface FlowTuple {
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  /** 0 where the protocol has no ports. */
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/** An entry of the connection tracking table. */
export interface Flow {
  readonly family: Family;
  /** IP protocol number: 17 is UDP. */
  readonly protocol: number;
  /** As the sender addressed the first packet. */
  readonly original: FlowTuple;
  /** As replies are expected: their source is the host that really answers. */
  readonly reply: FlowTuple;
  /** IPS_* bits; 0x20 is destination NAT. */
  readonly status: number;
  /** TCP_CONNTRACK_* number; 0 for other protocols. */
  readonly tcpState: number;
  /** Seconds until the kernel forgets it without a further packet; 0 when the message does not tell. */
  readonly timeout: number;
  readonly mark: number;
  readonly zone: number;
  /** Distinguishes this entry from a later one with the same addresses. */
  readonly id: number;
}

/** What the kernel needs to find an entry, and to leave a later one with the same addresses alone. */
export type FlowIdentity = Pick<Flow, 'family' | 'protocol' | 'original' | 'zone' | 'id'>;

/** Which flows to visit. The kernel applies all conditions but an IPv6 address, and copies only flows that match. */
export interface FlowFilter {
  readonly family: Family;
  readonly protocol?: number;
  /** Needs `protocol`. */
  readonly originalDestinationPort?: number;
  readonly originalDestination?: Uint8Array;
  /** Flows whose mark has `value` in the bits of `mask`. */
  readonly mark?: { readonly value: number; readonly mask: number };
}

/** Whether a flow passes the filter. Needed after the dump, because kernels ignore conditions they do not know. */
export function matchesFilter(flow: Flow, filter: FlowFilter): boolean {
  const { protocol, originalDestinationPort: port, originalDestination: address, mark } = filter;
  if (flow.family !== filter.family) return false;
  if (protocol !== undefined && flow.protocol !== protocol) return false;
  if (port !== undefined && flow.original.destinationPort !== port) return false;
  if (address && Buffer.compare(flow.original.destination, address) !== 0) return false;
  return !mark || ((flow.mark ^ mark.value) & mark.mask) === 0;
}
