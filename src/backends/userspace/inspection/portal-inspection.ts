import type { Forwarder } from '../../../forwarder/forwarder.ts';
import type { KernelInterfaces } from '../../../kernel/open.ts';
import { formatIP, joinHostPort, splitIPPort } from '../../../model/ip.ts';
import type { SyncRequest } from '../../backend.ts';
import { forwardedAnswer } from '../../forwarded-fate.ts';
import { answered, type Difference, type KernelAnswer, type Packet } from '../../inspection.ts';
import { answerOf } from '../../nft-answer.ts';
import { listOf } from '../outlets.ts';
import type { Served } from '../placing.ts';
import { isSetName, portalSetDefinition, portalTable } from '../portals/layout.ts';
import { nodeElements } from '../portals/node-elements.ts';
import type { ReturnPorts } from '../return-ports.ts';
import type { UserspaceSettings } from '../settings.ts';
import { listenerDifferences } from './listener-differences.ts';
import { elementDifferences, tableDifferences } from './portal-differences.ts';
import { readTable } from './table-snapshot.ts';
import { portToBeOpened, wantedServices } from './wanted-services.ts';

export interface PortalInspectionOptions {
  readonly settings: UserspaceSettings;
  readonly kernel: Pick<KernelInterfaces, 'nft' | 'addresses'>;
  /** Of the backend that runs in this process; undefined when none does. */
  readonly running:
    | {
        readonly served: ReadonlyMap<string, Served>;
        readonly returnPorts: ReturnPorts | undefined;
        readonly forwarder: Forwarder;
      }
    | undefined;
}

/**
 * Takes a packet through the table of portals and on to the listener that it leads to. Rejects with NotUnderstoodError
 * when it meets a rule whose meaning is not known.
 */
export async function askPortals(packet: Packet, options: PortalInspectionOptions): Promise<KernelAnswer> {
  const { kernel, settings, running } = options;
  const { protocol, source } = packet;
  const table = portalTable(settings.family);
  const lookedAt = `table ${table.family} ${table.name} and the listeners of this process`;
  const { fate, evidence } = await answerOf(packet, {
    client: kernel.nft,
    table,
    definitionOf: (set) => (isSetName(set) ? portalSetDefinition(settings.family, set) : undefined),
    addresses: await kernel.addresses.list(),
  });
  if (fate.action !== 'forward') return { fate, evidence, lookedAt };
  const at = fate.targets.map(({ endpoint }) => `${endpoint}/${protocol}`).join(', ');
  if (!running) throw new Error(`packets are sent to ${at}, and who listens there is not of this process`);
  const [target, ...others] = fate.targets;
  if (!target || others.length > 0) throw new Error(`packets are sent to one of ${at} by chance`);
  const to = splitIPPort(target.endpoint);
  const outlook =
    to && protocol !== 'SCTP'
      ? await running.forwarder.outlook(protocol, { ip: formatIP(to.ip), port: to.port }, source)
      : undefined;
  if (!outlook)
    return { fate: { action: 'reject' }, evidence: [...evidence, `nobody listens at ${at}`], lookedAt };
  const answer = forwardedAnswer(outlook, packet);
  const whole = { ...answer, evidence: [...evidence, ...answer.evidence] };
  return answered(whole, lookedAt, { kind: 'listener', at: target.endpoint });
}

/** The table, its elements, and the listeners that they lead to. Without a running backend no listener is there. */
export async function comparePortals(
  request: Omit<SyncRequest, 'changed'>,
  { settings, kernel, running }: PortalInspectionOptions,
): Promise<readonly Difference[]> {
  const served = running?.served ?? new Map<string, Served>();
  const wanted = wantedServices(request.plans, served, settings);
  const [table, addresses, listeners] = await Promise.all([
    readTable(kernel.nft, settings.family),
    kernel.addresses.list(),
    running?.forwarder.listeners(),
  ]);
  const { portRange, hostIP, choice } = settings;
  const ports = portRange ? `${portRange.first}-${portRange.last}` : 'any';
  const wantedListeners = wanted.flatMap(({ plan, sockets }) =>
    [...sockets].map(([outlet, socket]) => {
      const place = `${joinHostPort(hostIP, socket?.port ?? ports)}/${plan.port.protocol}`;
      return { plan, list: listOf(outlet), name: outlet, place, socket };
    }),
  );
  const open = [...served].flatMap(([service, { sockets }]) =>
    [...sockets.values()].map((socket) => ({ service, socket })),
  );
  const unopened = settings.keepsSource ? { TCP: portToBeOpened, UDP: portToBeOpened } : undefined;
  const returnPorts = running?.returnPorts ?? unopened;
  const shared = nodeElements(request.serviceCIDRs, addresses, settings, returnPorts);
  const elements = [
    ...shared.map((element) => ({ service: undefined, element })),
    ...wanted.flatMap((each) => each.elements.map((element) => ({ service: each.key, element }))),
  ];
  const before = [...served].flatMap(([service, each]) =>
    each.elements.map((element) => ({ service, element })),
  );
  return [
    ...tableDifferences(settings, table),
    ...listenerDifferences(wantedListeners, open, listeners ?? new Map(), choice),
    ...elementDifferences(elements, before, table),
  ];
}
