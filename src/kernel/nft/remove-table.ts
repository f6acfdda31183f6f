import { NftBatch } from './batch.ts';
import type { NftClient } from './client.ts';
import { isNotFound, NftError } from './errors.ts';
import type { TableRef } from './objects.ts';

/** Errno names with which a kernel without nf_tables, or without it for a family, refuses to look up a table. */
const unknownHere: ReadonlySet<string> = new Set(['EINVAL', 'EOPNOTSUPP', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']);

/** Removes a table, also of another program. Succeeds when it does not exist or the kernel has no nf_tables. */
export async function removeTable(client: NftClient, table: TableRef): Promise<void> {
  if (!(await tableExists(client, table))) return;
  try {
    await client.commit(new NftBatch().delete('table', table));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Whether a table exists. False where the kernel has no nf_tables, or none for this family. */
export async function tableExists(client: NftClient, table: TableRef): Promise<boolean> {
  try {
    return (await client.getTable(table)) !== undefined;
  } catch (error) {
    if (error instanceof NftError && unknownHere.has(error.errno)) return false;
    throw error;
  }
}
