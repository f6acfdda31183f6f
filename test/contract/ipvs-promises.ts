import {
  type Answers,
  type EndpointPlace,
  type EndpointSpec,
  type ExpectedPacket,
  type Fate,
  IGNORE,
  type ServiceSpec,
} from './story.ts';

const placesHere: readonly EndpointPlace[] = ['A', 'C', 'node'];

/** What ipvs mode, as upstream made it, promises of a packet that the other modes promise something else of. */
export function promisedByIpvs(packet: ExpectedPacket, spec: ServiceSpec): Answers | Fate {
  const { to, expect } = packet;
  if (to === 'unallocated' || to === 'loopback' || to === 'loopback2') return expect;
  if (to === 'clusterIP') {
    // A virtual server without a real one.
    return expect === 'DROP' && spec.internalPolicy === 'Local' ? 'REJECT' : expect;
  }
  if (expect === IGNORE && isOtherPort(packet)) return 'REJECT';
  return spec.externalPolicy === 'Local' ? underPolicyLocal(packet, spec) : expect;
}

/** Addresses of services are addresses of the node, and what they do not serve is rejected. */
function isOtherPort({ port, transport }: ExpectedPacket): boolean {
  return port !== undefined || transport !== undefined;
}

/** Everybody gets the endpoints here, or those elsewhere when there are none, and keeps the own address. */
function underPolicyLocal({ from, to, expect }: ExpectedPacket, spec: ServiceSpec): Answers | Fate {
  const isForbidden = expect === 'DROP' && to === 'loadBalancer' && spec.ranges !== undefined;
  if (isForbidden || expect === 'REJECT' || expect === 'RESET' || expect === IGNORE) return expect;
  const endpoints = spec.endpoints.map((at) => (typeof at === 'string' ? { at } : at));
  const here = serving(endpoints.filter(({ at }) => placesHere.includes(at)));
  const servers = here.length > 0 ? here : serving(endpoints);
  return Object.fromEntries(servers.map(({ at }) => [at, at === from ? 'MASQ' : 'OWN']));
}

/** Those that are ready; for want of them, those that drain. */
function serving(endpoints: readonly EndpointSpec[]): readonly EndpointSpec[] {
  const ready = endpoints.filter(({ state = 'ready' }) => state === 'ready' || state === 'silent');
  return ready.length > 0 ? ready : endpoints.filter(({ state }) => state === 'draining');
}
