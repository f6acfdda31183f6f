import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { Flow, FlowFilter } from '../kernel/ct/flow.ts';
import { type Family, formatIP, parseIP } from '../model/ip.ts';
import type { FlowTable, Sweep } from './reconciler.ts';
import type { Scope, UDPFlow } from './udp-targets.ts';

const UDP = 17;
/** Stale entries to collect before they are deleted; the dump pauses meanwhile. */
const deletedAtOnce = 256;

/**
 * The UDP entries of one family in the kernel's connection tracking table. Only a few of them are in memory at a time.
 */
export function kernelFlowTable(client: ConntrackClient, family: Family): FlowTable {
  return {
    async sweep(sweep) {
      for (const filter of filtersOf(family, sweep.scopes)) await sweepTable(client, filter, sweep);
    },
    close: () => client.close(),
  };
}

async function sweepTable(client: ConntrackClient, filter: FlowFilter, sweep: Sweep): Promise<void> {
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
        if (sweep.isStale(new KernelFlow(entry))) stale.push(entry);
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

  constructor(entry: Flow) {
    this.#entry = entry;
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
}
