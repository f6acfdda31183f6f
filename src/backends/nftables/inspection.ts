import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SyncRequest } from '../backend.ts';
import { answered, type Difference, type Inspection, type KernelAnswer, type Packet } from '../inspection.ts';
import { answerOf } from '../nft-answer.ts';
import { tableDifferences } from './differences.ts';
import { isSetName, setDefinition, tableOf } from './layout.ts';
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

  /** Rejects with NotUnderstoodError when the packet meets a rule whose meaning is not known. */
  async ask(packet: Packet): Promise<KernelAnswer> {
    const { nft, addresses } = this.#options.kernel;
    const { family, masqueradeBit } = this.#options.settings;
    const table = tableOf(family);
    const followed = await answerOf(packet, {
      client: nft,
      table,
      definitionOf: (set) => (isSetName(set) ? setDefinition(family, set) : undefined),
      addresses: await addresses.list(),
    });
    const delivery = { kind: 'rewritten', mark: 1 << masqueradeBit } as const;
    return answered(followed, `table ${table.family} ${table.name}`, delivery);
  }

  async compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]> {
    const { kernel, settings, clock } = this.#options;
    const addresses = settings.nodePortAddresses.matchAll ? [] : await kernel.addresses.list();
    return tableDifferences({ client: kernel.nft, settings, clock }, { ...request, addresses });
  }

  async close(): Promise<void> {
    this.#options.kernel.close();
  }
}
