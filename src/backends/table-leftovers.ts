import type { NftClient } from '../kernel/nft/client.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import { removeTable, tableExists } from '../kernel/nft/remove-table.ts';
import { openKernel } from '../kernel/open.ts';
import { systemClock } from '../lib/clock.ts';
import { type Family, families } from '../model/ip.ts';
import type { Logger } from '../obs/log.ts';
import { inTurn, type Leftover, type LeftoverSource } from './leftovers.ts';

/** The nf_tables tables that a mode keeps, one per family. */
export function tableLeftovers(tableOf: (family: Family) => TableRef): LeftoverSource {
  const tables = families.map((family) => ({ family, table: tableOf(family) }));
  return {
    find: ({ logger }) =>
      withNft<readonly Leftover[]>(logger, [], async (nft) => {
        const found: Leftover[] = [];
        for (const { family, table } of tables) {
          if (!(await tableExists(nft, table))) continue;
          found.push({ kind: 'nf_tables table', family, name: `${table.family} ${table.name}`, count: 1 });
        }
        return found;
      }),
    remove: ({ logger }) =>
      withNft(logger, undefined, (nft) =>
        inTurn(
          tables.map(
            ({ table }) =>
              () =>
                removeTable(nft, table),
          ),
        ),
      ),
  };
}

/** A node on which nf_tables cannot be reached has no tables. */
async function withNft<T>(logger: Logger, otherwise: T, work: (nft: NftClient) => Promise<T>): Promise<T> {
  const kernel = await openKernel(systemClock).catch((error: unknown) => {
    logger.v(2).info('Cannot reach nftables; nothing to remove', { error });
    return undefined;
  });
  if (!kernel) return otherwise;
  try {
    return await work(kernel.nft);
  } finally {
    kernel.close();
  }
}
