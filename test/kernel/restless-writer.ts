/** `restless-writer.ts MS`: another program that changes a table of its own all the time, for this long. */
import { NftBatch } from '../../src/kernel/nft/batch.ts';
import { types } from '../../src/kernel/nft/fields.ts';
import { openNftClient } from '../../src/kernel/nft/netlink-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';

const table = { family: 'ip', name: 'restless' } as const;
const set = { table, name: 'addresses', key: [types.ipv4Addr] };
const element = { key: Uint8Array.of(10, 0, 0, 1) };

const client = openNftClient(await loadLibc(), { clock: systemClock });
await client.commit(new NftBatch().add('table', table).add('set', set));
const end = performance.now() + Number(process.argv[2]);
console.log('writes');
while (performance.now() < end) {
  await client.commit(new NftBatch().addElements(set, [element]));
  await client.commit(new NftBatch().deleteElements(set, [element]));
}
client.close();
