import type { ConntrackClient } from '../kernel/ct/client.ts';
import type { FlowFilter, FlowIdentity } from '../kernel/ct/flow.ts';
import { IPS_ASSURED, IPS_OFFLOAD, type TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { Sysctl } from '../kernel/sysctl.ts';
import { type AddressKey, keyBytes, keyText } from '../model/address-key.ts';
import { type Family, parseIP } from '../model/ip.ts';
import type { FlowTable, Sweep } from './reconciler.ts';
import type { Scope, UDPFlow } from './udp-targets.ts';

const UDP = 17;
/** Stale entries to collect before they are deleted; the dump pauses meanwhile. */
const deletedAtOnce = 256;

/** After this many seconds without a packet, no answer is expected. The kernel rounds to seconds. */
const quietSeconds = 3;

/** What the kernel tells about its table; undefined when that is not known. */
export interface TableFacts {
  /** Seconds for which a UDP entry is kept after a packet. */
  readonly ordinary: number | undefined;
  /** The same for entries with packets in both directions for more than two seconds. */
  readonly stream: number | undefined;
  /** Number of entries of all protocols. */
  readonly entries?: number | undefined;
}

export function tableFacts(sysctl: Pick<Sysctl, 'read'>): TableFacts {
  const name = 'net/netfilter/nf_conntrack';
  return {
    ordinary: sysctl.read(`${name}_udp_timeout`),
    stream: sysctl.read(`${name}_udp_timeout_stream`),
    entries: sysctl.read(`${name}_count`),
  };
}

/** The kernel's connection tracking table. */
type Entries = Pick<ConntrackClient, 'forEachFilteredFlow' | 'deleteFlows' | 'close'>;

/**
 * The UDP entries of one family in the kernel's connection tracking table. Only a few of them are in memory at a time.
 */
export function kernelFlowTable(
  client: Entries,
  family: Family,
  factsNow: () => TableFacts,
  withoutFastPath: WithoutFastPath = (work) => work(),
): FlowTable {
  return {
    async sweep(sweep) {
      const facts = factsNow();
      const flow = new KernelFlow(facts);
      const isStale = (entry: TrackedFlow) => entry.protocol === UDP && sweep.isStale(flow.of(entry));
      for (const filter of filtersOf(family, sweep.scopes, facts.entries)) {
        await sweepTable(client, filter, { ...sweep, isStale, withoutFastPath });
      }
    },
    close: () => client.close(),
  };
}

/** Does the work while every flow takes the usual way through the kernel. */
export type WithoutFastPath = (work: () => Promise<void>) => Promise<void>;

interface EntrySweep extends Pick<Sweep, 'onDeleted'> {
  readonly withoutFastPath: WithoutFastPath;
  isStale(entry: TrackedFlow): boolean;
}

async function sweepTable(client: Entries, filter: FlowFilter, sweep: EntrySweep): Promise<void> {
  const refused: Error[] = [];
  let stale: FlowIdentity[] = [];
  /** Kernels before 6.4, or without that correction, do not delete an entry whose flow is on the fast path. */
  const busy: FlowIdentity[] = [];
  const remove = async (entries: readonly FlowIdentity[], postpone: boolean): Promise<void> => {
    const { deleted, failures } = await client.deleteFlows(entries);
    sweep.onDeleted(deleted);
    for (const { flow, error } of failures) {
      if (postpone && error.code === 'EBUSY') busy.push(flow);
      else refused.push(error);
    }
  };
  const removeStale = (): Promise<void> => {
    const entries = stale;
    stale = [];
    return remove(entries, true);
  };
  try {
    await client.forEachFilteredFlow(filter, {
      flow: (entry) => {
        if (sweep.isStale(entry)) stale.push(identityOf(entry));
      },
      pause: () => (stale.length < deletedAtOnce ? undefined : removeStale()),
      // Nothing to undo: entries found so far are stale, and deleting one twice does no harm.
      restart: () => {},
    });
  } finally {
    await removeStale();
    if (busy.length > 0) await sweep.withoutFastPath(() => remove(busy, false));
  }
  const [first] = refused;
  if (!first) return;
  throw new Error(`${refused.length} entries could not be deleted: ${first.message}`, { cause: first });
}

function identityOf(entry: TrackedFlow): FlowIdentity {
  const { family, protocol, sourcePort, destinationPort, zone, id } = entry;
  const [source, destination] = [keyBytes(entry.source), keyBytes(entry.destination)];
  return { family, protocol, zone, id, original: { source, destination, sourcePort, destinationPort } };
}

/** A walk whose flows the kernel filters costs as much as to read this many flows here. */
const entriesPerWalk = 6_000;

/**
 * Returns the filters of the walks: one that serves all scopes, or one for each, if the kernel then skips enough flows.
 * The kernel cannot filter by IPv6 address (see ct/codec.ts), only by port.
 */
function filtersOf(family: Family, scopes: readonly Scope[] | undefined, entries = 0): FlowFilter[] {
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
  const isOneCheaper = filters.size > 1 && entries < filters.size * entriesPerWalk;
  return isOneCheaper ? [all] : [...filters.values()];
}

/** Texts of this many addresses are kept during a sweep: the same few endpoints answer most flows. */
const textsKept = 10_000;

/** The current conntrack entry, for the reconciler. Addresses become texts only when read: most checks need only one. */
class KernelFlow implements UDPFlow {
  readonly #facts: TableFacts;
  readonly #texts = new Map<AddressKey, string>();
  #entry: TrackedFlow | undefined;

  constructor(facts: TableFacts) {
    this.#facts = facts;
  }

  of(entry: TrackedFlow): this {
    this.#entry = entry;
    return this;
  }

  get destinationIP(): string {
    return this.#text(this.#entry?.destination ?? 0);
  }

  get destinationPort(): number {
    return this.#entry?.destinationPort ?? 0;
  }

  get answererIP(): string {
    return this.#text(this.#entry?.answerer ?? 0);
  }

  get answererPort(): number {
    return this.#entry?.answererPort ?? 0;
  }

  get isQuiet(): boolean {
    const { status = 0, timeout = 0 } = this.#entry ?? {};
    const { ordinary = 0, stream = 0 } = this.#facts;
    // Of a flow on the fast path the kernel does not tell the time-out.
    if (status & IPS_OFFLOAD) return false;
    return (status & IPS_ASSURED ? stream : ordinary) - timeout >= quietSeconds;
  }

  #text(key: AddressKey): string {
    const known = this.#texts.get(key);
    if (known !== undefined) return known;
    const text = keyText(key);
    if (this.#texts.size < textsKept) this.#texts.set(key, text);
    return text;
  }
}
