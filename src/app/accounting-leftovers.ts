import type { Leftover, LeftoverSource } from '../backends/leftovers.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import { openNftClient } from '../kernel/nft/netlink-client.ts';
import { Sysctl } from '../kernel/sysctl.ts';
import { systemFiles } from '../kernel/system-files.ts';
import { systemClock } from '../lib/clock.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import { accountingMark, findAccounting, restoreAccounting } from '../traffic/accounting.ts';

/** Settings of the connection table that a process left which was killed while it observed traffic. */
export const accountingLeftovers: LeftoverSource = {
  find: () => withNft(find),
  remove: () => withNft((nft) => restoreAccounting(new Sysctl(systemFiles), nft)),
};

async function find(nft: NftClient): Promise<readonly Leftover[]> {
  const on = await findAccounting(new Sysctl(systemFiles), nft);
  if (!on) return [];
  const { family, name } = accountingMark;
  return [
    ...on.map((setting) => ({ kind: 'kernel parameter' as const, name: `${setting}=1`, count: 1 })),
    { kind: 'nf_tables table', family: 'IPv4', name: `${family} ${name}`, count: 1 },
  ];
}

async function withNft<T>(work: (nft: NftClient) => Promise<T>): Promise<T> {
  const nft = openNftClient(await loadLibc(), { clock: systemClock });
  try {
    return await work(nft);
  } finally {
    nft.close();
  }
}
