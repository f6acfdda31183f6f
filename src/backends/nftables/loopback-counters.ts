import type { NftClient } from '../../kernel/nft/client.ts';
import type { Family } from '../../model/ip.ts';
import type { Protocol } from '../../model/objects.ts';
import { loopbackCounter, protocols } from './fixed-chains.ts';
import { tableOf } from './layout.ts';

/** Packets to node ports on loopback addresses that were rejected so far; nothing for a table that is not there. */
export async function readLoopbackRejects(client: NftClient, family: Family): Promise<Map<Protocol, bigint>> {
  const counters = await client.listCounters(tableOf(family));
  const rejects = new Map<Protocol, bigint>();
  for (const protocol of protocols) {
    const counter = counters.find(({ name }) => name === loopbackCounter(protocol));
    if (counter) rejects.set(protocol, counter.packets ?? 0n);
  }
  return rejects;
}
