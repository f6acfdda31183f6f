import { foretoldBalance, type PacketRules } from '../backends/packet-rules.ts';
import type { TrafficWish } from '../inspect/traffic.ts';
import type { TrafficItem } from '../inspect/traffic-api.ts';
import type { TimeSlice } from '../lib/time-slice.ts';
import { addressKeyFrom, keyText } from '../model/address-key.ts';
import { type Family, joinHostPort } from '../model/ip.ts';
import type { Balance } from '../model/service-port.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { listShares } from '../plan/shares.ts';
import { endpointKey, endpointOf } from './destination.ts';
import { Figures } from './figures.ts';
import type { Observation } from './observation.ts';
import type { ObservedService } from './service-index.ts';

/** The most items in an answer. */
const maxItems = 100_000;
const noTraffic = new Figures();

/** The figures of an observation as of its last look, in slices of time. */
export async function trafficItems(
  observation: Observation,
  wish: TrafficWish,
  rulesOf: (family: Family) => PacketRules,
  timeSlice: TimeSlice,
): Promise<{ readonly items: readonly TrafficItem[]; readonly leftOut: number }> {
  const items: TrafficItem[] = [];
  let leftOut = wish.by === 'client' ? observation.forgottenClients : 0;
  for (const index of observation.services.byFamily.values()) {
    for (const service of index.services()) {
      if (timeSlice.isSpent) await timeSlice.yield();
      if ((!service.traffic && !wish.withIdle) || !wish.isWanted(service.plan)) continue;
      for (const item of itemsOf(service, observation, wish, rulesOf)) {
        if (items.length < maxItems) items.push(item);
        else leftOut++;
      }
    }
  }
  return { items, leftOut };
}

function itemsOf(
  service: ObservedService,
  observation: Observation,
  { by, withIdle, maxAgeMs }: TrafficWish,
  rulesOf: (family: Family) => PacketRules,
): TrafficItem[] {
  const { plan, traffic } = service;
  const { look, isCounted } = observation;
  const item = (figures: Figures, of: Partial<TrafficItem> = {}): TrafficItem => ({
    service: service.key,
    family: plan.port.family,
    ...noEndpoint,
    client: null,
    ...of,
    ...figures.at(look, isCounted, maxAgeMs !== undefined),
  });
  if (by === 'service') return [item(traffic?.total ?? noTraffic)];
  if (by === 'client') {
    return [...(traffic?.clients ?? [])].map(([client, figures]) =>
      item(figures, { client: keyText(client) }),
    );
  }
  // Rules are made when somebody asks: few Services do.
  const isHashed = plan.balance !== 'default';
  const balance = isHashed ? foretoldBalance(plan, rulesOf(plan.port.family)) : plan.balance;
  const shares = expectedShares(plan, balance);
  const placed = (endpoint: string) => endpointFields(endpoint, service.placements.of(endpoint), shares);
  const items = [...(traffic?.endpoints ?? [])].map(([key, figures]) => {
    const { address, port } = endpointOf(key);
    const endpoint = joinHostPort(keyText(address), port);
    return item(figures, placed(endpoint));
  });
  if (withIdle) {
    for (const { id, ip, port } of plan.endpoints) {
      const key = addressKeyFrom(ip);
      if (key === undefined || traffic?.endpoints.has(endpointKey(key, port))) continue;
      items.push(item(noTraffic, placed(id)));
    }
  }
  return traffic?.refused ? [...items, item(traffic.refused)] : items;
}

/** The fields of an item that is not about one endpoint. */
export const noEndpoint = { endpoint: null, pod: null, zone: null, expectedShare: null } as const;

/** The fields of an item that is about one endpoint. */
export function endpointFields(
  endpoint: string,
  { pod = null, zone = null }: Partial<Pick<TrafficItem, 'pod' | 'zone'>>,
  shares: ReadonlyMap<string, number>,
): Pick<TrafficItem, keyof typeof noEndpoint> {
  return { endpoint, pod, zone, expectedShare: shares.get(endpoint) ?? 0 };
}

/** The share of new connections of each endpoint: of those to the cluster IP, or where these get none, from outside. */
export function expectedShares(plan: PlannedPort, balance: Balance): ReadonlyMap<string, number> {
  const decision = plan.internal.action === 'forward' ? plan.internal : plan.external;
  return decision.action === 'forward' ? listShares(plan, decision.endpoints, balance) : new Map();
}
