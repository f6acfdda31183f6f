import type { Forwarder } from '../../../forwarder/forwarder.ts';
import type { KernelInterfaces } from '../../../kernel/open.ts';
import { isLoopback, joinHostPort, parseIP } from '../../../model/ip.ts';
import type { SyncRequest } from '../../backend.ts';
import type { Difference, KernelAnswer, Packet } from '../../inspection.ts';
import { Owners } from '../owners.ts';
import type { Served } from '../placing.ts';
import { nodeElements } from '../portals/node-elements.ts';
import type { UserspaceSettings } from '../settings.ts';
import type { Holdings } from './claimed-frontends.ts';
import { forwardedAnswer } from './forwarded-fate.ts';
import { listenerDifferences } from './listener-differences.ts';
import { pathOf } from './packet-path.ts';
import { elementDifferences, layoutDifferences } from './portal-differences.ts';
import type { IsOwn } from './registers.ts';
import { TableSnapshot } from './table-snapshot.ts';
import { wantedServices } from './wanted-services.ts';

export interface PortalInspectionOptions {
  readonly settings: UserspaceSettings;
  readonly kernel: Pick<KernelInterfaces, 'nft' | 'addresses'>;
  /** Of the backend that runs in this process; undefined when none does. */
  readonly running: { readonly holdings: Holdings<Served>; readonly forwarder: Forwarder } | undefined;
}

/** Takes a packet through the table of portals and on to the listener that it leads to. */
export async function askPortals(packet: Packet, options: PortalInspectionOptions): Promise<KernelAnswer> {
  const { kernel, settings, running } = options;
  const table = await TableSnapshot.read(kernel.nft, settings.family);
  const path = await pathOf(packet, table, ownAddresses(await kernel.addresses.list()));
  const { end, ip, port, isTranslated, evidence } = path;
  if (end !== 'through') return { fate: { action: end }, evidence };
  if (!isTranslated) return { fate: { action: 'pass' }, evidence };
  const at = `${joinHostPort(ip, port)}/${packet.protocol}`;
  if (!running) throw new Error(`packets are sent to ${at}, and who listens there is not of this process`);
  const { protocol, source } = packet;
  const outlook =
    protocol === 'SCTP' ? undefined : await running.forwarder.outlook(protocol, { ip, port }, source);
  if (!outlook) return { fate: { action: 'reject' }, evidence: [...evidence, `nobody listens at ${at}`] };
  const answer = forwardedAnswer(outlook, source);
  return { ...answer, evidence: [...evidence, ...answer.evidence] };
}

/** The table, its elements, and the listeners that they lead to. Without a running backend no listener is there. */
export async function comparePortals(
  request: Omit<SyncRequest, 'changed'>,
  { settings, kernel, running }: PortalInspectionOptions,
): Promise<readonly Difference[]> {
  const holdings: Holdings<Served> = running?.holdings ?? { served: new Map(), owners: new Owners() };
  const { served } = holdings;
  const wanted = wantedServices(request.plans, holdings, settings.nodeIP);
  const [table, addresses, listeners] = await Promise.all([
    TableSnapshot.read(kernel.nft, settings.family),
    kernel.addresses.list(),
    running?.forwarder.listeners(),
  ]);
  const { portRange, hostIP, choice } = settings;
  const ports = portRange ? `${portRange.first}-${portRange.last}` : 'any';
  const wantedListeners = wanted.flatMap(({ plan, sockets }) =>
    [...sockets].map(([list, socket]) => {
      const place = `${joinHostPort(hostIP, socket?.port ?? ports)}/${plan.port.protocol}`;
      return { plan, list, name: list, place, socket };
    }),
  );
  const open = [...served].flatMap(([service, { sockets }]) =>
    [...sockets.values()].map((socket) => ({ service, socket })),
  );
  const shared = nodeElements(request.serviceCIDRs, addresses, settings);
  const elements = [
    ...shared.map((element) => ({ service: undefined, element })),
    ...wanted.flatMap((each) => each.elements.map((element) => ({ service: each.key, element }))),
  ];
  const before = [...served].flatMap(([service, each]) =>
    each.elements.map((element) => ({ service, element })),
  );
  return [
    ...layoutDifferences(settings, table),
    ...listenerDifferences(wantedListeners, open, listeners ?? new Map(), choice),
    ...(await elementDifferences(elements, before, table)),
  ];
}

/** Packets to these are for this node. */
export function ownAddresses(addresses: readonly string[]): IsOwn {
  const own = new Set(addresses);
  return (text) => {
    const ip = parseIP(text);
    return own.has(text) || (ip !== undefined && isLoopback(ip));
  };
}
