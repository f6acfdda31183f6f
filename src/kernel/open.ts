import type { Clock } from '../lib/clock.ts';
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
  close(): void;
}

/** Opens them; rejects when a socket cannot be opened. */
export async function openKernel(clock: Clock, logger = silentLogger): Promise<KernelInterfaces> {
  const libc = await loadLibc();
  const options = socketOptions(clock, logger);
  const nft = openNftClient(libc, options);
  try {
    const addresses = openInterfaceAddresses(libc, options);
    return { nft, addresses, close: () => [nft, addresses].forEach((socket) => void socket.close()) };
  } catch (error) {
    nft.close();
    throw error;
  }
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
  const route = openRouteClient(libc, { clock });
  try {
    const nft = openRulesetReader(libc, { clock });
    return { nft, route, close: () => [nft, route].forEach((socket) => void socket.close()) };
  } catch (error) {
    route.close();
    throw error;
  }
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
  const opened: { close(): void }[] = [];
  const keep = <T extends { close(): void }>(socket: T): T => {
    opened.push(socket);
    return socket;
  };
  const close = () => opened.forEach((socket) => void socket.close());
  try {
    return {
      nft: keep(openNftClient(libc, { clock })),
      rules: keep(openRulesetReader(libc, { clock })),
      route: keep(openRouteClient(libc, { clock })),
      conntrack: keep(openConntrackClient(libc, { clock })),
      follow: (listener) => followTraces(libc, listener),
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Opens only the list of addresses, which needs no privilege and no nf_tables. Rejects when there is no socket. */
export async function openAddresses(clock: Clock, logger = silentLogger): Promise<InterfaceAddresses> {
  return openInterfaceAddresses(await loadLibc(), socketOptions(clock, logger));
}

function socketOptions(clock: Clock, logger: Logger): SocketOptions {
  const onDatagram = datagramLog(logger);
  return { clock, ...(onDatagram && { onDatagram }) };
}
