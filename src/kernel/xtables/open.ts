import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import { loadLibc } from '../../native/koffi-libc.ts';
import type { Libc } from '../../native/libc.ts';
import { type AcctClient, openAcctClient } from '../acct/client.ts';
import type { NftClient } from '../nft/client.ts';
import { openNftClient } from '../nft/netlink-client.ts';
import { openRuleEvents, type RuleEventListener, type RuleSubscription } from '../nft/rule-events.ts';
import { type InterfaceAddresses, openInterfaceAddresses } from '../route/addresses.ts';
import { readTableChains, type TableChains } from './table-chains.ts';
import { openTableSizes, type TableSizes } from './table-size.ts';

/** The kernel interfaces, beside the programs, of a mode that writes iptables rules. */
export interface XtablesKernel {
  readonly addresses: InterfaceAddresses;
  /** Rejects with a SystemError when the socket cannot be opened. */
  readonly acct: AcctClient;
  /** Throws a SystemError when the socket cannot be opened. */
  subscribeRules(listener: RuleEventListener): RuleSubscription;
  /** Throws a SystemError when the socket cannot be opened. */
  openSizes(family: Family): TableSizes;
  close(): void;
}

/** Opens them in this network namespace; rejects when there is no socket for listing addresses. */
export async function openXtablesKernel(clock: Clock): Promise<XtablesKernel> {
  return xtablesKernel(await loadLibc(), clock);
}

export function xtablesKernel(libc: Libc, clock: Clock): XtablesKernel {
  const addresses = openInterfaceAddresses(libc, { clock });
  const acct = acctClient(libc, clock);
  return {
    addresses,
    acct,
    subscribeRules: openRuleEvents(libc),
    openSizes: (family) => openTableSizes(libc, family),
    close: () => [addresses, acct].forEach((socket) => void socket.close()),
  };
}

/** The iptables rules of both kinds, as the kernel has them: no program is needed to look at them. */
export interface ChainKernel {
  /** Rules of iptables-nft are in the tables of the same name. */
  readonly nft: NftClient;
  /** The chains of a legacy table that exists. Throws a SystemError when the kernel refuses. */
  readLegacy(family: Family, table: string): TableChains;
  close(): void;
}

/** Rejects with a SystemError when the socket cannot be opened. */
export async function openChainKernel(clock: Clock): Promise<ChainKernel> {
  const libc = await loadLibc();
  const nft = openNftClient(libc, { clock });
  return {
    nft,
    readLegacy: (family, table) => readTableChains(libc, family, table),
    close: () => nft.close(),
  };
}

/** Without the socket every call rejects, but the start does not fail: the kernel has no counters then. */
function acctClient(libc: Libc, clock: Clock): AcctClient {
  try {
    return openAcctClient(libc, { clock });
  } catch (error) {
    const refuse = () => Promise.reject(error);
    return { get: refuse, create: refuse, close() {} };
  }
}
