import type { SavedTable } from '../../kernel/iptables/saved-table.ts';
import type { Clock } from '../../lib/clock.ts';
import { TimeSlice } from '../../lib/time-slice.ts';
import type { ServiceCounters } from '../inspection.ts';
import { isServiceChain } from './names.ts';
import { serviceOfRule } from './service-of-rule.ts';

const dispatchChains = ['KUBE-SERVICES', 'KUBE-NODEPORTS'];

/**
 * New connections of every service port that has endpoints, out of a dump of nat with counters: how often its rules
 * rewrote a destination, summed up over its endpoints. Only first packets meet the nat table, so that packets and
 * bytes are not known. The kernel counts an endpoint from zero whenever its chain is written, that is after a restart
 * of the program and when its rules change.
 */
export async function serviceCounters(nat: SavedTable, clock: Clock): Promise<ServiceCounters[]> {
  const timeSlice = new TimeSlice(clock);
  const counted: ServiceCounters[] = [];
  for (const [suffix, service] of await servicesBySuffix(nat, timeSlice)) {
    if (timeSlice.isSpent) await timeSlice.yield();
    const connections = connectionsOf(nat, suffix);
    counted.push({ service, connections, packets: undefined, bytes: undefined });
  }
  return counted.sort((a, b) => (a.service < b.service ? -1 : 1));
}

/** The chains of a service port have the same digits at their end. */
async function servicesBySuffix(nat: SavedTable, timeSlice: TimeSlice): Promise<Map<string, string>> {
  const services = new Map<string, string>();
  for (const chain of dispatchChains) {
    for (const { rule, line } of nat.rules(chain)) {
      if (timeSlice.isSpent) await timeSlice.yield();
      const target = rule.target?.name ?? '';
      const service = isServiceChain(target) ? serviceOfRule(line) : undefined;
      if (service !== undefined) services.set(target.slice(target.lastIndexOf('-') + 1), service);
    }
  }
  return services;
}

function connectionsOf(nat: SavedTable, suffix: string): number {
  const endpoints = new Set<string>();
  for (const chain of [`KUBE-SVC-${suffix}`, `KUBE-SVL-${suffix}`]) {
    for (const { rule } of nat.rules(chain)) {
      if (rule.target?.name.startsWith('KUBE-SEP-')) endpoints.add(rule.target.name);
    }
  }
  let connections = 0;
  for (const endpoint of endpoints) {
    for (const { rule, packets } of nat.rules(endpoint)) {
      if (rule.target?.name === 'DNAT') connections += packets;
    }
  }
  return connections;
}
