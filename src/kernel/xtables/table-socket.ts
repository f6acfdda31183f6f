import type { Family } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import { AF_INET, AF_INET6, type Libc, SOCK_DGRAM, SOL_IP, SOL_IPV6 } from '../../native/libc.ts';

/** IPT_SO_GET_INFO and IPT_SO_GET_ENTRIES; IPv6 has the same numbers. */
const GET_INFO = 64;
const GET_ENTRIES = 65;
/** struct ipt_getinfo: name, valid_hooks, hook_entry, underflow, num_entries, size. */
const infoLength = 84;
const nameLength = 32;
const validHooksOffset = 32;
const hookEntryOffset = 36;
const entriesOffset = 76;
const bytesOffset = 80;
/** struct ipt_get_entries: name, size, and after 4 bytes of padding the entries. */
const sizeOffset = 32;
const entryTableOffset = 40;
const hooks = 5;

/** What the kernel says of a table of legacy iptables (x_tables). */
export interface TableInfo {
  readonly entries: number;
  readonly bytes: number;
  /** Offset of the first entry of each built-in chain, by the number of its hook; undefined without that chain. */
  readonly hookEntries: readonly (number | undefined)[];
}

/**
 * The socket options of x_tables. To ask for a table that does not exist may make the kernel create it; see
 * `legacyTables`. Opening and reading throw a SystemError without CAP_NET_ADMIN or without x_tables.
 */
export interface TableSocket {
  info(table: string): TableInfo;
  /** The entries of a table that has this size. Throws EAGAIN when it has another size now. */
  entries(table: string, bytes: number): Uint8Array<ArrayBuffer>;
  close(): void;
}

export function openTableSocket(libc: Libc, family: Family): TableSocket {
  const [domain, level] = family === 'IPv4' ? [AF_INET, SOL_IP] : [AF_INET6, SOL_IPV6];
  // A raw socket would need CAP_NET_RAW, too.
  const fd = libc.socket(domain, SOCK_DGRAM, 0);
  return {
    info(table) {
      const info = named(table, infoLength);
      libc.getsockopt(fd, level, GET_INFO, info);
      const view = new DataView(info.buffer);
      const u32 = (offset: number) => view.getUint32(offset, hostLittleEndian);
      const valid = u32(validHooksOffset);
      const hookEntries = Array.from({ length: hooks }, (_, hook) =>
        (valid >> hook) & 1 ? u32(hookEntryOffset + 4 * hook) : undefined,
      );
      return { entries: u32(entriesOffset), bytes: u32(bytesOffset), hookEntries };
    },
    entries(table, bytes) {
      const answer = named(table, entryTableOffset + bytes);
      new DataView(answer.buffer).setUint32(sizeOffset, bytes, hostLittleEndian);
      libc.getsockopt(fd, level, GET_ENTRIES, answer);
      return answer.subarray(entryTableOffset);
    },
    close: () => libc.close(fd),
  };
}

/** A buffer that begins with the name of a table, as every request does. */
function named(table: string, length: number): Uint8Array<ArrayBuffer> {
  if (table.length >= nameLength) throw new RangeError(`table name ${JSON.stringify(table)} is too long`);
  const buffer = new Uint8Array(new ArrayBuffer(length));
  new TextEncoder().encodeInto(table, buffer);
  return buffer;
}
