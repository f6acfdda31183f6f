import type { RealServer, VirtualServer } from '../../kernel/ipvs/objects.ts';
import type { IpsetName } from './sets.ts';

/** A virtual server in the kernel. */
export interface CurrentServer {
  readonly server: VirtualServer;
  /** By `formatRealServer`; those that drain are here, too. */
  readonly reals: Map<string, RealServer>;
  /** Why its real servers are not known, when they are not. */
  readonly unreadable?: Error;
}

/**
 * What the kernel is believed to hold in one family. A full sync reads it; every write updates it. Changes by other
 * programs make it outdated until the next full sync.
 */
export class CurrentState {
  /** By `formatVirtualServer`; those of other software for firewall marks are not in here. */
  readonly servers = new Map<string, CurrentServer>();
  /** Canonical entries; a set that could not be listed is missing, and left alone. */
  readonly sets = new Map<IpsetName, Set<string>>();
  /** On the device. Empty when it could not be listed: everything is then bound again, and nothing unbound. */
  readonly addresses = new Set<string>();
}
