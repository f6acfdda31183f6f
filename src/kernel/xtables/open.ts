import type { Clock } from '../../lib/clock.ts';
import type { Family } from '../../model/ip.ts';
import { loadLibc } from '../../native/koffi-libc.ts';
import { type AcctClient, openAcctClient } from '../acct/client.ts';
import { openRuleEvents, type RuleEventListener, type RuleSubscription } from '../nft/rule-events.ts';
import { type InterfaceAddresses, openInterfaceAddresses } from '../route/addresses.ts';
import { openTableSizes, type TableSizes } from './table-size.ts';

/** What a mode that writes iptables rules asks of the kernel itself, besides running the programs. */
export interface XtablesKernel {
  readonly addresses: InterfaceAddresses;
  readonly acct: AcctClient;
  /** Throws a SystemError when the socket cannot be had. */
  subscribeRules(listener: RuleEventListener): RuleSubscription;
  /** Throws a SystemError when the socket cannot be had. */
  openSizes(family: Family): TableSizes;
  close(): void;
}

/** Opens it in this network namespace; rejects when a socket cannot be had. */
export async function openXtablesKernel(clock: Clock): Promise<XtablesKernel> {
  const libc = await loadLibc();
  const addresses = openInterfaceAddresses(libc, { clock });
  try {
    const acct = openAcctClient(libc, { clock });
    return {
      addresses,
      acct,
      subscribeRules: openRuleEvents(libc),
      openSizes: (family) => openTableSizes(libc, family),
      close: () => [addresses, acct].forEach((socket) => void socket.close()),
    };
  } catch (error) {
    addresses.close();
    throw error;
  }
}
