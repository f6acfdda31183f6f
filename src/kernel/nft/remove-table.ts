import { NftBatch } from './batch.ts';
import type { NftClient } from './client.ts';
import { isNotFound, NftError } from './errors.ts';
import type { TableRef } from './objects.ts';

/** What a kernel without nf_tables, or without it in a family, answers to a question about a table. */
const unknownHere: ReadonlySet<string> = new Set(['EINVAL', 'EOPNOTSUPP', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']);

/** Removes a table, whoever wrote it. Succeeds when there is none, or could be none. */
export async function removeTable(client: NftClient, table: TableRef): Promise<void> {
  if (!(await isThere(client, table))) return;
  try {
    await client.commit(new NftBatch().delete('table', table));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

async function isThere(client: NftClient, table: TableRef): Promise<boolean> {
  try {
    return (await client.getTable(table)) !== undefined;
  } catch (error) {
    if (error instanceof NftError && unknownHere.has(error.errno)) return false;
    throw error;
  }
}
