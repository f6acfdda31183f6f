import type { EntryFailure, SetRef } from '../../kernel/ipset/client.ts';
import type { SetDefinition } from '../../kernel/ipset/objects.ts';
import type {
  IpvsOperation,
  ListedRealServer,
  ListedVirtualServer,
  RealServer,
  VirtualServerKey,
} from '../../kernel/ipvs/objects.ts';
import type { JumpStructure } from '../jumps.ts';

/**
 * IPVS of this network namespace, both families; IpvsClient implements it. Rejects only when the kernel cannot be asked:
 * what it refuses are failures.
 */
export interface IpvsServers {
  listServers(): Promise<readonly ListedVirtualServer[]>;
  /** Empty when there is no such virtual server. */
  listRealServers(server: VirtualServerKey): Promise<readonly ListedRealServer[]>;
  /** Those of all virtual servers, by `formatVirtualServer`; undefined when they can only be asked for one by one. */
  listAllRealServers?(): Promise<ReadonlyMap<string, readonly RealServer[]> | undefined>;
  /** Applies changes in order, whether or not earlier ones were refused. Failures name the very operations given. */
  apply(operations: readonly IpvsOperation[]): Promise<readonly OperationFailure[]>;
}

export interface OperationFailure {
  readonly operation: IpvsOperation;
  readonly error: Error;
}

/** ipsets of this network namespace; IpsetClient implements it. Entries are canonical texts. */
export interface IpSets {
  /** Makes the set unless it is there; rejects when there is one of that name with other parameters. */
  create(set: SetDefinition): Promise<void>;
  /** Undefined when there is no such set. */
  list(name: string): Promise<{ readonly entries: readonly string[] } | undefined>;
  /** Adds each entry, there already or not; resolves to those that were refused. */
  add(set: SetRef, entries: readonly string[]): Promise<readonly EntryFailure[]>;
  /** Deletes each entry, there or not; otherwise like `add`. */
  delete(set: SetRef, entries: readonly string[]): Promise<readonly EntryFailure[]>;
}

/** An address that could not be bound or unbound. */
export interface AddressFailure {
  readonly address: string;
  readonly error: Error;
}

/** The dummy device whose addresses make the node accept packets to services. */
export const deviceName = 'kube-ipvs0';

/** What is done to it. */
export interface ServiceDevice {
  /** Makes it unless a link of that name is there; it stays down. */
  ensure(): Promise<void>;
  /** What is on it, of both families, link-local addresses included. */
  addresses(): Promise<readonly string[]>;
  /** Adds host addresses; those that are there already count as bound. */
  bind(addresses: readonly string[]): Promise<readonly AddressFailure[]>;
  /** Removes them; those that are not there (ENXIO, and other than upstream EADDRNOTAVAIL) count as unbound. */
  unbind(addresses: readonly string[]): Promise<readonly AddressFailure[]>;
}

/** iptables, or ip6tables, of this network namespace. */
export interface Iptables {
  /** Makes chains and jumps that are missing; see `ensureJumps`. */
  ensure(structure: JumpStructure): Promise<readonly Error[]>;
  /** Runs `iptables-restore -w 5 --noflush --counters` on this input. */
  restore(input: string): Promise<void>;
}

/** What ipvs mode asks of the kernel in one family. */
export interface IpvsKernel {
  readonly servers: IpvsServers;
  readonly sets: IpSets;
  readonly device: ServiceDevice;
  readonly iptables: Iptables;
  /**
   * Addresses of both families on every interface but `kube-ipvs0`, whatever its state. Asked at every sync: best
   * answered from a list that notifications keep current.
   */
  nodeAddresses(): Promise<readonly string[]>;
}
