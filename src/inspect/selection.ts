import { isOwnAddress, type NodeFacts } from '../backends/node-facts.ts';
import type { DirectService } from '../backends/packet-rules.ts';
import type { Endpoint } from '../model/endpoint.ts';
import { canonicalIP, type Family, familyOf, formatIP, splitIPPort } from '../model/ip.ts';
import type { ServicePort } from '../model/service-port.ts';
import { claimedFrontends } from '../plan/frontend.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { accepts } from './explain-direct.ts';

/** Which service ports to report; without a field, all of them. */
export interface Selector {
  /**
   * A Service or one of its ports: `web` in every namespace, `shop/web`, `shop/web:http`, `shop/web:80/TCP`. Or an
   * address of its frontends or endpoints: `10.96.0.10`, `10.96.0.10:80`, `[fd00::a]:53/UDP`.
   */
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}

export const selectorParameters = ['name', 'namespace'] as const satisfies readonly (keyof Selector)[];

/** Selects service ports of one family, and endpoints of a service port that is selected. */
export interface Selection {
  port(plan: PlannedPort): boolean;
  endpoint(plan: PlannedPort, endpoint: Endpoint): boolean;
}

/** An address with or without a port and a protocol. */
interface Destination {
  readonly ip: string;
  readonly port: number | undefined;
  readonly protocol: string | undefined;
}

/** The family in which to select. */
export interface SelectedFamily {
  readonly family: Family;
  /** Called only for an address, which may be one of the node. */
  readonly facts: () => NodeFacts | Promise<NodeFacts>;
  /** What is served by listeners alone. */
  readonly direct: DirectService | undefined;
}

export async function selectionOf(
  { name = '', namespace = '' }: Selector,
  { family, facts, direct }: SelectedFamily,
): Promise<Selection> {
  const isInNamespace = ({ port }: PlannedPort) => namespace === '' || port.namespace === namespace;
  const destination = destinationOf(name);
  if (!destination) {
    return {
      port: (plan) => isInNamespace(plan) && (name === '' || isNamed(plan.port, name)),
      endpoint: () => true,
    };
  }
  if (familyOf(destination.ip) !== family) return { port: () => false, endpoint: () => false };
  const node = await facts();
  const isOfNode = isOwnAddress(destination.ip, node);
  const listening = listeningAt(destination, direct, node);
  const isFrontend = (plan: PlannedPort) =>
    hasFrontend(plan, destination, isOfNode) ||
    (listening.has(plan.port.key) && isAt(destination, destination.port, plan.port.protocol));
  const isEndpoint = ({ port }: PlannedPort, endpoint: Endpoint) =>
    endpoint.ip === destination.ip && isAt(destination, endpoint.port, port.protocol);
  return {
    port: (plan) =>
      isInNamespace(plan) &&
      (isFrontend(plan) || plan.endpoints.some((endpoint) => isEndpoint(plan, endpoint))),
    endpoint: (plan, endpoint) => isFrontend(plan) || isEndpoint(plan, endpoint),
  };
}

/** Whether `[NAMESPACE/]NAME[:PORT][/PROTO]` means this service port; PORT is its name or its number. */
function isNamed({ namespace, name, portName, port, protocol }: ServicePort, text: string): boolean {
  const namesOf = (service: string) => [service, `${service}:${port}`, `${service}:${portName || port}`];
  const names = [...namesOf(name), ...namesOf(`${namespace}/${name}`)];
  if (names.includes(text)) return true;
  const start = text.length - protocol.length - 1;
  return text.slice(start).toUpperCase() === `/${protocol}` && names.includes(text.slice(0, start));
}

/**
 * Whether the service port claims the destination. Node ports are at every address of the node; an address without a
 * port does not mean them, because it would mean all of them.
 */
function hasFrontend(plan: PlannedPort, destination: Destination, isOfNode: boolean): boolean {
  const mayBeNodePort = isOfNode && destination.port !== undefined;
  for (const frontend of claimedFrontends(plan)) {
    const isHere = frontend.kind === 'node port' ? mayBeNodePort : frontend.address === destination.ip;
    if (isHere && isAt(destination, frontend.port, frontend.protocol)) return true;
  }
  return false;
}

/** The keys of the service ports with a listener that accepts connections to the destination. */
function listeningAt(
  { ip, port }: Destination,
  direct: DirectService | undefined,
  node: NodeFacts,
): ReadonlySet<string> {
  if (!direct || port === undefined) return new Set();
  const places = direct.places.filter(({ address }) => accepts(address, { destination: ip, port }, node));
  return new Set(places.map(({ key }) => key));
}

function isAt({ port, protocol }: Destination, itsPort: number | undefined, itsProtocol: string): boolean {
  return (port === undefined || port === itsPort) && (protocol === undefined || protocol === itsProtocol);
}

/** Whether a selector's name is an address, not the name of a Service. */
export function isAddress(name: string): boolean {
  return destinationOf(name) !== undefined;
}

/** Reads `IP`, `IP:PORT` or either with `/PROTO`; undefined when the text is a name. */
function destinationOf(text: string): Destination | undefined {
  const [, address = '', protocol] = /^([^/]*)(?:\/([^/]*))?$/.exec(text) ?? [];
  const ip = canonicalIP(address.replace(/^\[(.*)\]$/, '$1'));
  if (ip !== undefined) return { ip, port: undefined, protocol: protocol?.toUpperCase() };
  const split = splitIPPort(address);
  return split && { ip: formatIP(split.ip), port: split.port, protocol: protocol?.toUpperCase() };
}
