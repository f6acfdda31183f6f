import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SyncRequest } from '../backend.ts';
import type { Difference, Inspection, KernelAnswer, Packet } from '../inspection.ts';
import { tableDifferences } from './differences.ts';
import { answerOf } from './kernel-answer.ts';
import type { NftablesSettings } from './settings.ts';

export interface NftablesInspectionOptions {
  readonly settings: NftablesSettings;
  /** Closed with the inspection. */
  readonly kernel: KernelInterfaces;
  readonly clock: Clock;
}

/** Reads the table of one family. */
export class NftablesInspection implements Inspection {
  readonly #options: NftablesInspectionOptions;

  constructor(options: NftablesInspectionOptions) {
    this.#options = options;
  }

  async ask(packet: Packet): Promise<KernelAnswer> {
    const { kernel, settings } = this.#options;
    return answerOf(packet, kernel.nft, settings.family, await kernel.addresses.list());
  }

  async compare({ plans, serviceCIDRs }: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]> {
    const { kernel, settings, clock } = this.#options;
    const interfaceAddresses = settings.nodePortAddresses.matchAll ? [] : await kernel.addresses.list();
    const facts = { serviceCIDRs, interfaceAddresses };
    return tableDifferences({ client: kernel.nft, settings, clock }, plans, facts);
  }

  async close(): Promise<void> {
    this.#options.kernel.close();
  }
}
