import { formatVirtualServer, type VirtualServerCounts } from '../../kernel/ipvs/objects.ts';
import type { ServiceCounters } from '../inspection.ts';
import type { DesiredState } from './desired.ts';

/** What the virtual servers of each service port counted since they were made, summed up over its addresses. */
export function serviceCounters(
  counts: readonly VirtualServerCounts[],
  desired: DesiredState,
): ServiceCounters[] {
  const sums = new Map<string, { connections: number; packets: number; bytes: number }>();
  for (const { connections, packets, bytes, ...key } of counts) {
    const owner = desired.server(formatVirtualServer(key))?.owner;
    if (owner === undefined) continue;
    const sum = sums.get(owner) ?? { connections: 0, packets: 0, bytes: 0 };
    sum.connections += connections;
    sum.packets += packets;
    sum.bytes += bytes;
    sums.set(owner, sum);
  }
  return [...sums]
    .map(([service, sum]) => ({ service, ...sum }))
    .sort((a, b) => (a.service < b.service ? -1 : 1));
}
