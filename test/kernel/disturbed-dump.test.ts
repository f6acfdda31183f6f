import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { NftBatch } from '../../src/kernel/nft/batch.ts';
import { openNftClient } from '../../src/kernel/nft/netlink-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace } from '../cluster/lab/namespace.ts';

const table = { family: 'ip', name: 'kube-proxy' } as const;
/** A dump of them takes many datagrams, between which others write. */
const CHAINS = 3_000;
/** Less than the pauses between all attempts at a dump take. */
const WRITING_MS = 1_000;

inNamespace(import.meta.url, () => {
  test('a table is read although another program writes all the time for a second', async () => {
    const client = openNftClient(await loadLibc(), { clock: systemClock });
    const names = Array.from({ length: CHAINS }, (_, i) => `chain-${i}`);
    const batch = new NftBatch().add('table', table);
    for (const name of names) batch.add('chain', { table, name });
    await client.commit(batch);
    const script = join(import.meta.dirname, 'restless-writer.ts');
    const writer = spawn(process.execPath, [script, String(WRITING_MS)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(writer, 'exit');
    try {
      await once(writer.stdout, 'data');
      const chains = await client.listChains(table);
      assert.deepEqual(chains.map(({ name }) => name).sort(), names.sort());
      assert.deepEqual(await ended, [0, null]);
    } finally {
      writer.kill();
      client.close();
    }
  });
});
