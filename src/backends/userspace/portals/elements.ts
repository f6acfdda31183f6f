import type { Verdict } from '../../../kernel/nft/expr.ts';
import { concatValues } from '../../../kernel/nft/fields.ts';
import type { Element } from '../../../kernel/nft/objects.ts';
import { cutComment } from '../../../kernel/nft/userdata.ts';
import { protocolNumbers } from '../../../kernel/numbers.ts';
import { toIP } from '../../../model/ip.ts';
import type { Protocol } from '../../../model/objects.ts';
import { servicePortName } from '../../../model/service-port.ts';
import type { Frontend } from '../../../plan/frontend.ts';
import type { ServicePlan } from '../../../plan/service-plan.ts';
import { admittedSources, mergeRanges } from '../../../plan/source-ranges.ts';
import { type Outlet, outletsOf, type SourceSettings } from '../outlets.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { PortalSetName } from './layout.ts';
import { rejectChain } from './rules.ts';

/** An element of one of our sets. Two of the same name are the same, or the newer one replaces the other. */
export interface PortalElement {
  readonly set: PortalSetName;
  readonly element: Element;
}

/** What is captured for one service port, and the port of each of its outlets. */
export interface CapturedService {
  readonly plan: ServicePlan;
  readonly frontends: readonly Frontend[];
  readonly proxyPorts: ReadonlyMap<Outlet, number>;
}

/** The settings that elements of service ports depend on. */
export type ElementSettings = SourceSettings & Pick<UserspaceSettings, 'nodeIP'>;

/** All elements of a service port. */
export function elementsOf(service: CapturedService, settings: ElementSettings): PortalElement[] {
  const { plan, frontends, proxyPorts } = service;
  const { clusterIP, protocol } = plan.port;
  const elements = frontends.flatMap((frontend) => [
    ...dispatchOf(frontend, service, settings),
    ...(frontend.sourceRanges.length > 0 ? guardOf(frontend, plan, settings.nodeIP) : []),
  ]);
  if (clusterIP !== '') elements.push({ set: 'cluster-addresses', element: { key: toIP(clusterIP).bytes } });
  for (const port of proxyPorts.values()) {
    elements.push({
      set: 'proxy-ports',
      element: { key: concatValues(protocolByte(protocol), portBytes(port)) },
    });
  }
  return elements;
}

/** Where an element is, comparable. */
export function placeOf({ set, element }: PortalElement): string {
  const end = element.keyEnd ? Buffer.from(element.keyEnd).toString('hex') : '';
  return `${set} ${Buffer.from(element.key).toString('hex')} ${end} ${element.intervalEnd ?? ''}`;
}

/** What an element says, comparable. */
export function meaningOf({ element }: PortalElement): string {
  const data = element.data ? Buffer.from(element.data).toString('hex') : '';
  return `${data} ${element.verdict ? JSON.stringify(element.verdict) : ''} ${element.comment ?? ''}`;
}

function dispatchOf(
  frontend: Frontend,
  { plan, proxyPorts }: CapturedService,
  settings: SourceSettings,
): PortalElement[] {
  const isNodePort = frontend.kind === 'node port';
  const key = keyOf(frontend);
  const comment = cutComment(servicePortName(plan.port));
  const elements: PortalElement[] = [];
  const toPort = (set: PortalSetName, outlet: Outlet | undefined): void => {
    const port = outlet && proxyPorts.get(outlet);
    if (port !== undefined) elements.push({ set, element: { key, data: portBytes(port), comment } });
  };
  const { outside, near, pods } = outletsOf(frontend, settings);
  toPort(isNodePort ? 'nodeports' : 'portals', outside);
  toPort(isNodePort ? 'near-nodeports' : 'near-portals', near);
  toPort(isNodePort ? 'pod-nodeports' : 'pod-portals', pods);
  const { action } = frontend.outside;
  if (action !== 'forward') {
    const verdict: Verdict = action === 'drop' ? { kind: 'drop' } : { kind: 'goto', chain: rejectChain };
    elements.push({ set: isNodePort ? 'refused-nodeports' : 'refused', element: { key, verdict, comment } });
  }
  return elements;
}

/** Admitted sources as ranges that do not overlap. */
function guardOf(frontend: Frontend, { port }: ServicePlan, nodeIP: string): PortalElement[] {
  const key = keyOf(frontend);
  const ranges = mergeRanges(admittedSources(port, nodeIP)).map(({ first, last }): PortalElement => {
    return { set: 'sources', element: { key: concatValues(key, first), keyEnd: concatValues(key, last) } };
  });
  return [{ set: 'guarded', element: { key } }, ...ranges];
}

function keyOf({ address, port, protocol }: Frontend): Uint8Array {
  const nodePort = concatValues(protocolByte(protocol), portBytes(port));
  return address === '' ? nodePort : concatValues(toIP(address).bytes, nodePort);
}

export function protocolByte(protocol: Protocol): Uint8Array {
  return Uint8Array.of(protocolNumbers[protocol]);
}

export function portBytes(port: number): Uint8Array {
  return Uint8Array.of(port >> 8, port & 0xff);
}
