import type { Family } from '../../model/ip.ts';
import type { Libc } from '../../native/libc.ts';
import { openTableSocket } from './table-socket.ts';

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

export function openTableSizes(libc: Libc, family: Family): TableSizes {
  const socket = openTableSocket(libc, family);
  return {
    read(table) {
      const { entries, bytes } = socket.info(table);
      return { entries, bytes };
    },
    close: () => socket.close(),
  };
}
