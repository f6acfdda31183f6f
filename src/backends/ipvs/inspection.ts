import type { Commands } from '../../kernel/iptables/commands.ts';
import { TableReader } from '../../kernel/iptables/table-reader.ts';
import { formatVirtualServer, isForeign, type VirtualServer } from '../../kernel/ipvs/objects.ts';
import { readPersistence, readTemplates } from '../../kernel/ipvs/persistence.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import type { Clock } from '../../lib/clock.ts';
import { CoalescedRead } from '../../lib/coalesced-read.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { SyncRequest } from '../backend.ts';
import {
  answered,
  type BindingSink,
  type Difference,
  type Inspection,
  type KernelAnswer,
  type Packet,
} from '../inspection.ts';
import type { JumpTable } from '../jumps.ts';
import { type AskedNode, ask, isPersistent } from './ask.ts';
import { readBindings } from './bindings.ts';
import { compare } from './compare.ts';
import { isAbsent } from './errors.ts';
import type { IpvsKernel } from './kernel.ts';
import { SetLookup } from './set-lookup.ts';
import type { IpvsSettings } from './settings.ts';

/** What an inspection reads from the kernel. */
export interface InspectedKernel extends Pick<IpvsKernel, 'servers' | 'sets' | 'device' | 'nodeAddresses'> {
  close(): void;
}

export interface InspectionOptions {
  readonly settings: IpvsSettings;
  readonly kernel: InspectedKernel;
  readonly tables: Pick<TableReader, 'read'>;
  readonly files: SystemFiles;
  readonly clock: Clock;
}

/** A valid interface name, safe to use in a path. */
const interfaceName = /^(?!\.\.?$)[^/\s]{1,15}$/;

/** What is the same for all packets. */
type Reading = Omit<AskedNode, 'server' | 'reals' | 'persistence'> & {
  /** By `formatVirtualServer`. */
  readonly servers: ReadonlyMap<string, VirtualServer>;
};

/**
 * Reads virtual servers, sets and addresses over netlink and rules with the programs, for every question. Questions
 * that arrive during a read share the next one.
 */
export class IpvsInspection implements Inspection {
  readonly #options: InspectionOptions;
  readonly #asked = new CoalescedRead<Reading>(() => this.#read());

  constructor(options: InspectionOptions) {
    this.#options = options;
  }

  /** Rejects with RuleNotUnderstoodError when the packet meets a rule whose meaning is not known. */
  async ask(packet: Packet): Promise<KernelAnswer> {
    const { servers, ...node } = await this.#asked.get();
    const { destination, port, protocol } = packet;
    const server = servers.get(formatVirtualServer({ address: destination, port, protocol }));
    const reals = server ? await this.#options.kernel.servers.listRealServers(server) : [];
    const call = { protocol, client: packet.source, address: destination, port };
    const persistence =
      server && isPersistent(server) ? readPersistence(this.#options.files, call) : undefined;
    const lookedAt = 'virtual servers, the KUBE sets and the KUBE chains of iptables';
    return answered(await ask(packet, { ...node, server, reals, persistence }), lookedAt, {
      kind: 'virtual server',
      mark: 1 << this.#options.settings.masqueradeBit,
    });
  }

  async compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]> {
    const { settings, kernel, clock } = this.#options;
    return compare(request, settings, { kernel, tables: await this.#tables(), clock });
  }

  bindings(plans: readonly ServicePlan[], sink: BindingSink): Promise<void> {
    return readBindings(readTemplates(), plans, sink);
  }

  async close(): Promise<void> {
    this.#options.kernel.close();
  }

  async #read(): Promise<Reading> {
    const { settings, kernel, clock } = this.#options;
    const servers = new Map<string, VirtualServer>();
    for (const server of await kernel.servers.listServers()) {
      if (!isForeign(server)) servers.set(formatVirtualServer(server), server);
    }
    const bound = await this.#boundAddresses();
    return {
      servers,
      tables: await this.#tables(),
      sets: await SetLookup.read(kernel.sets, settings.family),
      bound: new Set(bound),
      addresses: new Set([...bound, ...(await kernel.nodeAddresses())]),
      isBridged: (name) => this.#isBridged(name),
      clock,
    };
  }

  async #tables() {
    const { tables } = this.#options;
    const read = (table: JumpTable) => tables.read(table);
    return { nat: await read('nat'), filter: await read('filter') };
  }

  /** None while there is no device. */
  async #boundAddresses(): Promise<readonly string[]> {
    try {
      return await this.#options.kernel.device.addresses();
    } catch (error) {
      if (isAbsent(error)) return [];
      throw error;
    }
  }

  /** Whether the interface is a bridge whose packets pass the tables. */
  #isBridged(name: string): boolean {
    if (!interfaceName.test(name)) return false;
    const program = this.#options.settings.family === 'IPv4' ? 'iptables' : 'ip6tables';
    const isOn = this.#text(`/proc/sys/net/bridge/bridge-nf-call-${program}`).trim() === '1';
    return isOn && this.#text(`/sys/class/net/${name}/bridge/bridge_id`) !== '';
  }

  #text(path: string): string {
    try {
      return this.#options.files.read(path);
    } catch {
      // No bridge, or a kernel without br_netfilter.
      return '';
    }
  }
}

/** Opens an inspection. Closes `kernel` with it, and on failure. */
export async function openInspection(
  options: Omit<InspectionOptions, 'tables'> & { readonly commands: Commands },
): Promise<Inspection> {
  const { commands, files, kernel } = options;
  try {
    return new IpvsInspection({ ...options, tables: await TableReader.open(commands, files) });
  } catch (error) {
    kernel.close();
    throw error;
  }
}
