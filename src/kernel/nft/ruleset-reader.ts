import type { Libc } from '../../native/libc.ts';
import { NETLINK_NETFILTER } from '../netlink/constants.ts';
import { NetlinkSocket, type SocketOptions } from '../netlink/socket.ts';
import { openTransport } from '../netlink/transport.ts';
import { NftQueries } from './queries.ts';

/** Reads the tables of any program, over one socket. Rejects with NftError when the kernel refuses. */
export interface RulesetReader
  extends Pick<NftQueries, 'listAllChains' | 'listChainRules' | 'listSets' | 'getElement' | 'getCatchAll'> {
  close(): void;
}

/** Throws SystemError when the socket cannot be opened. */
export function openRulesetReader(libc: Libc, options: SocketOptions): RulesetReader {
  const socket = new NetlinkSocket(openTransport(libc, NETLINK_NETFILTER), options);
  return Object.assign(new NftQueries(socket), { close: () => socket.close() });
}
