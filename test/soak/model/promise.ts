import { servingEndpoints, verdict } from '../../contract/decision-table.ts';
import { promisedByIpvs } from '../../contract/ipvs-promises.ts';
import type { NodeState } from '../../contract/objects.ts';
import { zones } from '../../contract/objects.ts';
import type { Answers, EndpointSpec, Fate, ServiceSpec, Target } from '../../contract/story.ts';
import type { SoakPacket } from './packet.ts';

/** What the client of a connection sees: the name of the host that answers, or a fate. */
export type Seen = string;

/** One state of everything that decides about a packet. */
export interface State {
  readonly mode: string;
  /** Undefined while the service does not exist. */
  readonly service: ServiceSpec | undefined;
  readonly endpoints: readonly EndpointSpec[];
  readonly node: NodeState;
}

/** No service has the address: the rest of the world may answer, or the node refuses; an endpoint must not answer. */
export const unserved: readonly Seen[] = ['world', 'REJECT', 'DROP', 'RESET'];

/** Returns what the client of a packet may see in this state. */
export function promised(packet: SoakPacket, state: State): readonly Seen[] {
  const { mode, service, endpoints, node } = state;
  if (!service || !isOffered(packet, service) || !isServedAt(packet.to, mode, node)) return unserved;
  const { from, to } = packet;
  const expect = verdict(from, to, service, servingEndpoints(endpoints, node.zone ?? zones.here));
  if (to === 'loadBalancer' && service.ranges && from !== 'client') return barred(packet, mode, expect);
  if (mode === 'ipvs') return namesOf(promisedByIpvs({ from, to, expect }, { ...service, endpoints }));
  // iptables mode ignores packets of the node itself to external addresses without endpoints.
  const isIgnored = mode === 'iptables' && from === 'node' && (to === 'external' || to === 'loadBalancer');
  return expect === 'REJECT' && isIgnored ? unserved : namesOf(expect);
}

/** For a packet to a load balancer whose source ranges do not include the sender. */
function barred({ from }: SoakPacket, mode: string, expect: Answers | Fate): readonly Seen[] {
  // Which packets of the node itself the ranges apply to depends on the mode.
  if (from === 'node') return ['DROP', ...unserved, ...namesOf(expect)];
  // Without endpoints iptables mode has no chain for the ranges either.
  return mode === 'iptables' && expect === 'REJECT' ? ['REJECT'] : ['DROP'];
}

function isOffered(
  { to, family }: SoakPacket,
  { families, nodePort, external, loadBalancer }: ServiceSpec,
): boolean {
  if (families && !families.includes(family)) return false;
  const isNodePort = to === 'nodePort' || to === 'second';
  return to === 'clusterIP' || Boolean(isNodePort ? nodePort : to === 'external' ? external : loadBalancer);
}

/** iptables and ipvs mode serve node ports at every address of the node, the others at that of the Node object. */
function isServedAt(to: Target, mode: string, { address = 'node' }: NodeState): boolean {
  if (mode === 'iptables' || mode === 'ipvs') return true;
  return !((to === 'nodePort' && address !== 'node') || (to === 'second' && address !== 'nodeSecond'));
}

function namesOf(expect: Answers | Fate): readonly Seen[] {
  return typeof expect === 'string' ? [expect] : Object.keys(expect);
}
