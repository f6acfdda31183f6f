import type { Family } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import { AF_INET, AF_INET6, IPPROTO_RAW, type Libc, SOCK_RAW, SOL_IP, SOL_IPV6 } from '../../native/libc.ts';

/** The size of a table of legacy iptables (x_tables). Adding or deleting a rule changes it. */
export interface TableSize {
  readonly entries: number;
  readonly bytes: number;
}

/**
 * Reads the sizes of x_tables tables in microseconds; a program would take milliseconds. Opening or reading throws a
 * SystemError without CAP_NET_ADMIN or without x_tables.
 */
export interface TableSizes {
  read(table: string): TableSize;
  close(): void;
}

/** IPT_SO_GET_INFO and IP6T_SO_GET_INFO. */
const GET_INFO = 64;
/** struct ipt_getinfo: name, valid_hooks, hook_entry, underflow, num_entries, size. */
const infoLength = 84;
const maxName = 31;
const entriesOffset = 76;
const bytesOffset = 80;

export function openTableSizes(libc: Libc, family: Family): TableSizes {
  const [domain, level] = family === 'IPv4' ? [AF_INET, SOL_IP] : [AF_INET6, SOL_IPV6];
  const fd = libc.socket(domain, SOCK_RAW, IPPROTO_RAW);
  return {
    read(table) {
      if (table.length > maxName) throw new RangeError(`table name ${JSON.stringify(table)} is too long`);
      const info = new Uint8Array(new ArrayBuffer(infoLength));
      new TextEncoder().encodeInto(table, info);
      libc.getsockopt(fd, level, GET_INFO, info);
      const view = new DataView(info.buffer);
      return {
        entries: view.getUint32(entriesOffset, hostLittleEndian),
        bytes: view.getUint32(bytesOffset, hostLittleEndian),
      };
    },
    close: () => libc.close(fd),
  };
}
