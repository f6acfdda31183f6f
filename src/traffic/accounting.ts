import { NftBatch } from '../kernel/nft/batch.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import type { TableRef } from '../kernel/nft/objects.ts';
import { removeTable, tableExists } from '../kernel/nft/remove-table.ts';
import type { Sysctl } from '../kernel/sysctl.ts';

const folder = 'net/netfilter';
const COUNTERS = 'nf_conntrack_acct';
const EVENTS = 'nf_conntrack_events';
const TIMES = 'nf_conntrack_timestamp';
const switched = [COUNTERS, TIMES] as const;

/**
 * This program changed the settings that the empty chains of this table are named after from 0 to 1. Like the settings, it
 * belongs to the network namespace, is gone after a boot, and stays when the process is killed.
 */
export const accountingMark: TableRef = { family: 'ip', name: 'kube-accounting' };

export interface Accounting {
  /** Whether the kernel counts packets and bytes of new flows. */
  readonly isOn: boolean;
  /** Whether the kernel reports new and ended flows. */
  readonly hasEvents: boolean;
  /** Sets back what was changed. */
  restore(): Promise<void>;
}

/** Makes the kernel count packets and bytes of new flows, and remember when they began, if it lets us. */
export async function switchOnAccounting(sysctl: Sysctl, nft: NftClient): Promise<Accounting> {
  const off = switched.filter((name) => sysctl.read(`${folder}/${name}`) === 0);
  if (off.length > 0) await mark(off, nft);
  for (const name of off) set(sysctl, name, 1);
  return {
    isOn: sysctl.read(`${folder}/${COUNTERS}`) === 1,
    hasEvents: sysctl.read(`${folder}/${EVENTS}`) !== 0,
    async restore() {
      for (const name of off) set(sysctl, name, 0);
      // In one message, which is sent also when the process ends now.
      if (off.length > 0) await nft.commit(new NftBatch().destroy('table', accountingMark));
    },
  };
}

/**
 * The settings that are still on because the process that changed them was killed, as `net.netfilter.…`. Undefined without
 * the mark of such a process.
 */
export async function findAccounting(sysctl: Sysctl, nft: NftClient): Promise<string[] | undefined> {
  if (!(await tableExists(nft, accountingMark))) return undefined;
  const on = (await marked(nft)).filter((name) => sysctl.read(`${folder}/${name}`) === 1);
  return on.map((name) => `net.netfilter.${name}`);
}

/** Sets these back, and removes the mark. Does nothing without the mark. */
export async function restoreAccounting(sysctl: Sysctl, nft: NftClient): Promise<void> {
  if (!(await tableExists(nft, accountingMark))) return;
  for (const name of await marked(nft)) set(sysctl, name, 0);
  await removeTable(nft, accountingMark);
}

/** The settings in the mark, which exists. */
async function marked(nft: NftClient): Promise<readonly (typeof switched)[number][]> {
  const chains = await nft.listChains(accountingMark);
  return switched.filter((wanted) => chains.some(({ name }) => name === wanted));
}

async function mark(names: readonly string[], nft: NftClient): Promise<void> {
  const batch = new NftBatch().add('table', accountingMark);
  for (const name of names) batch.add('chain', { table: accountingMark, name });
  // Without nf_tables there is no mark, and the settings stay on if the process is killed.
  await nft.commit(batch).catch(() => {});
}

function set(sysctl: Sysctl, name: string, value: number): void {
  try {
    sysctl.write(`${folder}/${name}`, value);
  } catch {
    // A container may have /proc/sys read-only: then there are no bytes, or no ages.
  }
}
