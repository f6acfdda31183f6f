import type { Forwarder } from '../../../forwarder/forwarder.ts';
import type { InterfaceAddresses } from '../../../kernel/route/addresses.ts';
import { isLoopback, joinHostPort, toIP } from '../../../model/ip.ts';
import type { ServicePlan } from '../../../plan/service-plan.ts';
import type { SyncRequest } from '../../backend.ts';
import { forwardedAnswer } from '../../forwarded-fate.ts';
import { answered, type Difference, type KernelAnswer, type Packet } from '../../inspection.ts';
import type { DirectlyServed } from '../direct-driver.ts';
import { listeningName, listeningsOf } from '../direct-places.ts';
import { servableFrontends } from '../frontends.ts';
import type { ProxySocket } from '../proxy-sockets.ts';
import type { UserspaceSettings } from '../settings.ts';
import { listenerDifferences, type WantedListener } from './listener-differences.ts';

export interface DirectInspectionOptions {
  readonly settings: UserspaceSettings;
  readonly addresses: Pick<InterfaceAddresses, 'list'>;
  /** Why packets are not captured. */
  readonly reason: string;
  /** Of the backend that runs in this process; undefined when none does. */
  readonly running:
    | { readonly served: ReadonlyMap<string, DirectlyServed>; readonly forwarder: Forwarder }
    | undefined;
}

const lookedAt = 'the listeners of this process';

/** Asks the listener at the packet's destination; all other packets pass. */
export async function askListeners(packet: Packet, options: DirectInspectionOptions): Promise<KernelAnswer> {
  const { running, addresses, reason } = options;
  const { protocol, source, destination: ip, port } = packet;
  const isOwn = isLoopback(toIP(ip)) || (await addresses.list()).includes(ip);
  if (running && isOwn && protocol !== 'SCTP') {
    const outlook = await running.forwarder.outlook(protocol, { ip, port }, source);
    const at = joinHostPort(ip, port);
    if (outlook) return answered(forwardedAnswer(outlook, packet), lookedAt, { kind: 'listener', at });
  }
  const name = `${joinHostPort(ip, port)}/${protocol}`;
  const rows = [...(running?.served.values() ?? [])].flatMap((each) => each.rows);
  const known = rows.filter(({ frontend }) => frontend === name);
  const evidence = known.map(({ service, address, note }) =>
    [`${service} ${name}`, address && `served at ${address}`, note].filter(Boolean).join(', '),
  );
  return {
    fate: { action: 'pass' },
    evidence: [`packets are not captured: ${reason}`, ...evidence],
    lookedAt,
  };
}

/** Listeners that a sync would open, change, or close. */
export async function compareListeners(
  { plans }: Pick<SyncRequest, 'plans'>,
  { settings, addresses, running }: DirectInspectionOptions,
): Promise<readonly Difference[]> {
  const served = running?.served ?? new Map<string, DirectlyServed>();
  const own = await addresses.list();
  const wanted = [...plans.values()].flatMap((plan) =>
    wantedListeners(plan, served.get(plan.port.key)?.sockets, own, settings),
  );
  const open = [...served].flatMap(([service, { sockets }]) =>
    [...sockets.values()].map((socket) => ({ service, socket })),
  );
  const listeners = (await running?.forwarder.listeners()) ?? new Map();
  return listenerDifferences(wanted, open, listeners, settings.choice);
}

function wantedListeners(
  plan: ServicePlan,
  open: ReadonlyMap<string, ProxySocket> | undefined,
  addresses: readonly string[],
  settings: UserspaceSettings,
): WantedListener[] {
  const { protocol } = plan.port;
  return servableFrontends(plan)
    .filter(({ sourceRanges }) => sourceRanges.length === 0)
    .flatMap((frontend) => listeningsOf(frontend, addresses, settings))
    .map((listening) => {
      const name = listeningName(listening);
      const places = listening.places.map(({ ip, port }) =>
        port === 'pool' ? `any port of ${ip}` : `${joinHostPort(ip, port)}/${protocol}`,
      );
      return { plan, list: listening.list, name, place: places.join(' or '), socket: open?.get(name) };
    });
}
