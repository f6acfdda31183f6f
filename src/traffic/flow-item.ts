import type { FlowItem } from '../inspect/traffic-api.ts';
import { IPS_OFFLOAD, type TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import { nameOf, protocolNumbers } from '../kernel/numbers.ts';
import { keyText } from '../model/address-key.ts';
import { joinHostPort } from '../model/ip.ts';
import { stateOf } from './flow-state.ts';
import type { ObservedService } from './service-index.ts';

/** A flow of a service port, as the API tells it. `now` is in milliseconds since the Unix epoch. */
export function flowItem(flow: TrackedFlow, service: ObservedService, now: number): FlowItem {
  const { family, isCounted, startedAt } = flow;
  const endpoint = joinHostPort(keyText(flow.answerer), flow.answererPort);
  const volume = (value: number) => (isCounted ? value : null);
  return {
    family,
    protocol: nameOf(protocolNumbers, flow.protocol) ?? 'TCP',
    client: joinHostPort(keyText(flow.source), flow.sourcePort),
    frontend: joinHostPort(keyText(flow.destination), flow.destinationPort),
    service: service.key,
    endpoint,
    pod: service.placements.of(endpoint).pod ?? null,
    state: stateOf(flow),
    ...(flow.status & IPS_OFFLOAD && { onFastPath: true }),
    ageSeconds: startedAt === 0 ? null : Math.max(0, Math.round(now - startedAt) / 1000),
    packetsToEndpoint: volume(flow.packetsOut),
    packetsToClient: volume(flow.packetsBack),
    bytesToEndpoint: volume(flow.bytesOut),
    bytesToClient: volume(flow.bytesBack),
  };
}
