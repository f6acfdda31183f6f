import { isHere, serving } from './decision-table.ts';
import { type Answers, type ExpectedPacket, type Fate, IGNORE, type ServiceSpec } from './story.ts';

/** The outcome of a packet in ipvs mode, which by upstream's design differs from other modes in some cases. */
export function promisedByIpvs(packet: ExpectedPacket, spec: ServiceSpec): Answers | Fate {
  const { to, expect } = packet;
  if (to === 'unallocated' || to === 'loopback' || to === 'loopback2') return expect;
  if (to === 'clusterIP') {
    // A virtual server without real servers rejects.
    return expect === 'DROP' && spec.internalPolicy === 'Local' ? 'REJECT' : expect;
  }
  if (expect === IGNORE && isOtherPort(packet)) return 'REJECT';
  return spec.externalPolicy === 'Local' ? underPolicyLocal(packet, spec) : expect;
}

/** Whether a packet is for an unserved port: the node, which has the services' addresses, rejects it. */
function isOtherPort({ port, transport }: ExpectedPacket): boolean {
  return port !== undefined || transport !== undefined;
}

/** All clients reach the endpoints on this node, or all endpoints if there are none, and keep their address. */
function underPolicyLocal({ from, to, expect }: ExpectedPacket, spec: ServiceSpec): Answers | Fate {
  const isForbidden = expect === 'DROP' && to === 'loadBalancer' && spec.ranges !== undefined;
  if (isForbidden || expect === 'REJECT' || expect === 'RESET' || expect === IGNORE) return expect;
  const endpoints = spec.endpoints.map((at) => (typeof at === 'string' ? { at } : at));
  const here = serving(endpoints.filter(isHere));
  const servers = here.length > 0 ? here : serving(endpoints);
  return Object.fromEntries(servers.map(({ at }) => [at, at === from ? 'MASQ' : 'OWN']));
}
