import { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import { isNotFound } from '../../kernel/nft/errors.ts';
import type { Family } from '../../model/ip.ts';
import { tableOf } from './layout.ts';

/** Removes the table of a family, whoever wrote it. Succeeds when there is none. */
export async function removeTable(client: NftClient, family: Family): Promise<void> {
  const table = tableOf(family);
  if (!(await client.getTable(table))) return;
  try {
    await client.commit(new NftBatch().delete('table', table));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
