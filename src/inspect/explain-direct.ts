import type { Packet } from '../backends/inspection.ts';
import { isOwnAddress, type NodeFacts } from '../backends/node-facts.ts';
import { choiceOf, type DirectPlace, type DirectService } from '../backends/packet-rules.ts';
import { formatIP, isUnspecified, splitIPPort } from '../model/ip.ts';
import { distinctFrontends, type Frontend } from '../plan/frontend.ts';
import type { ServicePlan } from '../plan/service-plan.ts';

/** A frontend that the mode serves by listening at the packet's destination. */
export interface Listened {
  readonly frontend: Frontend;
  /** Where it listens: `127.0.0.1:8080`. */
  readonly address: string;
}

/** The frontend whose listener accepts the packet; undefined when nothing listens at its destination. */
export function listenedAt(
  packet: Packet,
  plans: ReadonlyMap<string, ServicePlan>,
  node: NodeFacts,
  { places }: DirectService,
): Listened | undefined {
  for (const { key, frontend: name, address } of places) {
    const plan = plans.get(key);
    if (plan?.port.protocol !== packet.protocol || !accepts(address, packet, node)) continue;
    const frontend = distinctFrontends(plan).find((each) => each.name === name);
    if (frontend && choiceOf(frontend.outside, plan).action === 'forward') return { frontend, address };
  }
  return undefined;
}

/** Whether a listener at this address accepts connections to the destination. */
export function accepts(
  address: string,
  { destination, port }: Pick<Packet, 'destination' | 'port'>,
  node: NodeFacts,
): boolean {
  const place = splitIPPort(address);
  if (place?.port !== port) return false;
  return isUnspecified(place.ip) ? isOwnAddress(destination, node) : formatIP(place.ip) === destination;
}

/** Why a frontend does not get its packets, and where it is served instead. */
export function notCaptured(frontend: Frontend, { reason, places }: DirectService): string[] {
  const uncaptured = `Packets to service addresses are not captured: ${reason}.`;
  const own = places.filter((place) => isOf(frontend, place));
  const served = own.flatMap(({ address }) => (address === '' ? [] : [address]));
  if (served.length > 0) return [uncaptured, `It is served at ${served.join(', ')} instead.`];
  const [note] = own.map((place) => place.note).filter(Boolean);
  return [uncaptured, ...(note === undefined || note.endsWith(reason) ? [] : [`It is ${note}.`])];
}

function isOf({ plan, name }: Frontend, place: DirectPlace): boolean {
  return place.key === plan.port.key && place.frontend === name;
}
