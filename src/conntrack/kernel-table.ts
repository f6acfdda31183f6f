import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { Flow, FlowFilter } from '../kernel/ct/flow.ts';
import { IPS_ASSURED } from '../kernel/ct/tracked-flow.ts';
import type { Sysctl } from '../kernel/sysctl.ts';
import { type Family, formatIP, parseIP } from '../model/ip.ts';
import type { FlowTable, Sweep } from './reconciler.ts';
import type { Scope, UDPFlow } from './udp-targets.ts';

const UDP = 17;
/** Stale entries to collect before they are deleted; the dump pauses meanwhile. */
const deletedAtOnce = 256;

/** After this many seconds without a packet, no answer is expected. The kernel rounds to seconds. */
const quietSeconds = 3;

/** Seconds for which the kernel keeps a UDP entry after a packet; undefined when that is not known. */
export interface UDPTimeouts {
  readonly ordinary: number | undefined;
  /** Of entries with packets in both directions for more than two seconds. */
  readonly stream: number | undefined;
}

export function udpTimeouts(sysctl: Pick<Sysctl, 'read'>): UDPTimeouts {
  const name = 'net/netfilter/nf_conntrack_udp_timeout';
  return { ordinary: sysctl.read(name), stream: sysctl.read(`${name}_stream`) };
}

/**
 * The UDP entries of one family in the kernel's connection tracking table. Only a few of them are in memory at a time.
 */
export function kernelFlowTable(
  client: ConntrackClient,
  family: Family,
  timeoutsNow: () => UDPTimeouts,
): FlowTable {
  return {
    async sweep(sweep) {
      const timeouts = timeoutsNow();
      const isStale = (entry: Flow) => sweep.isStale(new KernelFlow(entry, timeouts));
      for (const filter of filtersOf(family, sweep.scopes)) {
        await sweepTable(client, filter, { ...sweep, isStale });
      }
    },
    close: () => client.close(),
  };
}

interface EntrySweep extends Pick<Sweep, 'onDeleted'> {
  isStale(entry: Flow): boolean;
}

async function sweepTable(client: ConntrackClient, filter: FlowFilter, sweep: EntrySweep): Promise<void> {
  const refused: Error[] = [];
  let stale: Flow[] = [];
  const removeStale = async (): Promise<void> => {
    const entries = stale;
    stale = [];
    const { deleted, failures } = await client.deleteFlows(entries);
    sweep.onDeleted(deleted);
    refused.push(...failures.map(({ error }) => error));
  };
  try {
    await client.forEachFlow(filter, {
      flow: (entry) => {
        if (sweep.isStale(entry)) stale.push(entry);
      },
      pause: () => (stale.length < deletedAtOnce ? undefined : removeStale()),
      // Nothing to undo: entries found so far are stale, and deleting one twice does no harm.
      restart: () => {},
    });
  } finally {
    await removeStale();
  }
  const [first] = refused;
  if (!first) return;
  throw new Error(`${refused.length} entries could not be deleted: ${first.message}`, { cause: first });
}

/** Returns the filters for the kernel. It cannot filter by IPv6 address (see ct/codec.ts), only by port. */
function filtersOf(family: Family, scopes: readonly Scope[] | undefined): FlowFilter[] {
  const all = { family, protocol: UDP };
  if (!scopes) return [all];
  const filters = new Map<string, FlowFilter>();
  for (const { destinationIP, destinationPort } of scopes) {
    const ip = family === 'IPv4' && destinationIP !== undefined ? parseIP(destinationIP) : undefined;
    const filter = { ...all, originalDestinationPort: destinationPort };
    filters.set(
      `${ip?.bytes} ${destinationPort}`,
      ip ? { ...filter, originalDestination: ip.bytes } : filter,
    );
  }
  return [...filters.values()];
}

/** A conntrack entry for the reconciler. Addresses are formatted only when read: most checks need only one. */
class KernelFlow implements UDPFlow {
  readonly #entry: Flow;
  readonly #timeouts: UDPTimeouts;

  constructor(entry: Flow, timeouts: UDPTimeouts) {
    this.#entry = entry;
    this.#timeouts = timeouts;
  }

  get destinationIP(): string {
    const { family, original } = this.#entry;
    return formatIP({ family, bytes: original.destination });
  }

  get destinationPort(): number {
    return this.#entry.original.destinationPort;
  }

  get answererIP(): string {
    const { family, reply } = this.#entry;
    return formatIP({ family, bytes: reply.source });
  }

  get answererPort(): number {
    return this.#entry.reply.sourcePort;
  }

  get isQuiet(): boolean {
    const { status, timeout } = this.#entry;
    const { ordinary = 0, stream = 0 } = this.#timeouts;
    return (status & IPS_ASSURED ? stream : ordinary) - timeout >= quietSeconds;
  }
}
