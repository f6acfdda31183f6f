import type { Clock } from '../lib/clock.ts';
import { openTogether } from '../lib/open-together.ts';
import { loadLibc } from '../native/koffi-libc.ts';
import { type Logger, silentLogger } from '../obs/log.ts';
import { type ConntrackClient, openConntrackClient } from './ct/client.ts';
import { datagramLog } from './netlink/debug.ts';
import type { SocketOptions } from './netlink/socket.ts';
import type { NetlinkSubscription } from './netlink/subscription.ts';
import type { NftClient } from './nft/client.ts';
import { openNftClient } from './nft/netlink-client.ts';
import { openRulesetReader, type RulesetReader } from './nft/ruleset-reader.ts';
import { followTraces, type TraceListener } from './nft/trace.ts';
import { type InterfaceAddresses, openInterfaceAddresses } from './route/addresses.ts';
import { openRouteClient, type RouteClient } from './route/client.ts';

/** The kernel interfaces of a mode, in this network namespace. */
export interface KernelInterfaces {
  readonly nft: NftClient;
  readonly addresses: InterfaceAddresses;
  readonly links: Pick<RouteClient, 'listLinks' | 'watchLinks'>;
  close(): void;
}

/** Opens them; rejects when a socket cannot be opened. */
export async function openKernel(clock: Clock, logger = silentLogger): Promise<KernelInterfaces> {
  const libc = await loadLibc();
  const options = socketOptions(clock, logger);
  return openTogether((keep, close) => ({
    nft: keep(openNftClient(libc, options)),
    addresses: keep(openInterfaceAddresses(libc, options)),
    links: keep(openRouteClient(libc, options)),
    close,
  }));
}

/** What is needed to follow a packet through the rules of any program. */
export interface RulesetKernel {
  readonly nft: RulesetReader;
  readonly route: RouteClient;
  close(): void;
}

/** Opens it; rejects when a socket cannot be opened. */
export async function openRuleset(clock: Clock): Promise<RulesetKernel> {
  const libc = await loadLibc();
  return openTogether((keep, close) => ({
    route: keep(openRouteClient(libc, { clock })),
    nft: keep(openRulesetReader(libc, { clock })),
    close,
  }));
}

/** What is needed to follow packets of others through the kernel. */
export interface TraceKernel {
  readonly nft: NftClient;
  readonly rules: RulesetReader;
  readonly route: RouteClient;
  readonly conntrack: ConntrackClient;
  /** Subscribes to the steps of traced packets. */
  follow(listener: TraceListener): NetlinkSubscription;
  close(): void;
}

/** Opens it; rejects when a socket cannot be opened. */
export async function openTracing(clock: Clock): Promise<TraceKernel> {
  const libc = await loadLibc();
  return openTogether<TraceKernel>((keep, close) => ({
    nft: keep(openNftClient(libc, { clock })),
    rules: keep(openRulesetReader(libc, { clock })),
    route: keep(openRouteClient(libc, { clock })),
    conntrack: keep(openConntrackClient(libc, { clock })),
    follow: (listener) => followTraces(libc, listener),
    close,
  }));
}

/** Opens only the list of addresses, which needs no privilege and no nf_tables. Rejects when there is no socket. */
export async function openAddresses(clock: Clock, logger = silentLogger): Promise<InterfaceAddresses> {
  return openInterfaceAddresses(await loadLibc(), socketOptions(clock, logger));
}

function socketOptions(clock: Clock, logger: Logger): SocketOptions {
  const onDatagram = datagramLog(logger);
  return { clock, ...(onDatagram && { onDatagram }) };
}
