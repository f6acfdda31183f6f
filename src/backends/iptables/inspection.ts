import type { Commands } from '../../kernel/iptables/commands.ts';
import { TableReader } from '../../kernel/iptables/table-reader.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { openXtablesKernel, type XtablesKernel } from '../../kernel/xtables/open.ts';
import { openRecentClients, type RecentClients } from '../../kernel/xtables/recent-clients.ts';
import type { Clock } from '../../lib/clock.ts';
import { CoalescedRead } from '../../lib/coalesced-read.ts';
import type { Logger } from '../../obs/log.ts';
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
import type { RuleNode } from '../rule-path.ts';
import { ask } from './ask.ts';
import { readBindings } from './bindings.ts';
import { compare } from './compare.ts';
import { PacketCounters } from './counters.ts';
import { nodeLines } from './node-lines.ts';
import type { IptablesSettings } from './settings.ts';
import type { Counters } from './tables.ts';

export interface InspectionOptions {
  readonly settings: IptablesSettings;
  readonly commands: Commands;
  readonly files: SystemFiles;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What an inspection reads from the node. */
export interface InspectedNode {
  interfaceAddresses(): Promise<readonly string[]>;
  readonly recent: RecentClients;
  /** The packet counters that rules may name. */
  counters(): Promise<Counters>;
  close(): void;
}

const noCounters: Counters = { invalidDropped: false, localhostAccepted: false };

/** Opens sockets of its own; rejects when one cannot be had, or there is no iptables. */
export async function openInspection(options: InspectionOptions): Promise<Inspection> {
  const tables = await TableReader.open(options.commands, options.files);
  const kernel = await openXtablesKernel(options.clock);
  const node = await inspectedNode(kernel, options);
  return new IptablesInspection(options, tables, node);
}

async function inspectedNode(
  kernel: XtablesKernel,
  { files, logger }: InspectionOptions,
): Promise<InspectedNode> {
  const counters = await PacketCounters.open(kernel.acct, logger);
  return {
    recent: await openRecentClients(files),
    interfaceAddresses: () => kernel.addresses.list(),
    counters: async () => (await counters?.present()) ?? noCounters,
    close: () => kernel.close(),
  };
}

/**
 * Reads the tables for every question, with the programs that the sync uses. Questions that arrive during a read
 * share the next one.
 */
export class IptablesInspection implements Inspection {
  readonly #options: InspectionOptions;
  readonly #tables: TableReader;
  readonly #node: InspectedNode;
  readonly #asked = new CoalescedRead<RuleNode>(() => this.#read());

  constructor(options: InspectionOptions, tables: TableReader, node: InspectedNode) {
    this.#options = options;
    this.#tables = tables;
    this.#node = node;
  }

  /** Rejects with RuleNotUnderstoodError when the packet meets a rule whose meaning is not known. */
  async ask(packet: Packet): Promise<KernelAnswer> {
    const { masqueradeBit } = this.#options.settings;
    return answered(await ask(packet, await this.#asked.get()), 'the KUBE chains of iptables', {
      kind: 'rewritten',
      mark: 1 << masqueradeBit,
    });
  }

  async compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]> {
    const { settings, clock, logger } = this.#options;
    const counters = await this.#node.counters();
    const node = nodeLines(settings, counters, await this.#node.interfaceAddresses(), logger);
    const tables = {
      nat: await this.#tables.read('nat'),
      filter: await this.#tables.read('filter'),
      mangle: await this.#tables.read('mangle'),
    };
    return compare(request, { settings, tables, node, counters, clock });
  }

  bindings(plans: readonly ServicePlan[], sink: BindingSink): Promise<void> {
    return readBindings(this.#node.recent, plans, sink, this.#options.clock);
  }

  async close(): Promise<void> {
    this.#node.close();
  }

  async #read(): Promise<RuleNode> {
    const { clock } = this.#options;
    const tables = { nat: await this.#tables.read('nat'), filter: await this.#tables.read('filter') };
    const addresses = new Set(await this.#node.interfaceAddresses());
    return { tables, addresses, clock, recent: this.#node.recent };
  }
}
