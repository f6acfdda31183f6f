import type { Family } from '../../model/ip.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import type { Libc } from '../../native/libc.ts';
import { SystemError } from '../../native/system-error.ts';
import { openTableSocket, type TableInfo, type TableSocket } from './table-socket.ts';

/** The chains of a table, by name; for each rule of a chain, the chain that it jumps or goes to, if any. */
export type TableChains = ReadonlyMap<string, readonly (string | undefined)[]>;

/**
 * Reads the chains of legacy tables without the iptables programs. Read only tables that exist (`legacyTables`): the
 * kernel may create one that it is asked for. Throws a SystemError without CAP_NET_ADMIN or without x_tables.
 */
export function readTableChains(libc: Libc, family: Family, table: string): TableChains {
  const socket = openTableSocket(libc, family);
  try {
    const [info, entries] = readConsistently(socket, table);
    return decodeChains(entries, info.hookEntries, family);
  } finally {
    socket.close();
  }
}

const attempts = 10;

/** Reads again when another program changes the table between the two requests. */
function readConsistently(socket: TableSocket, table: string): [TableInfo, Uint8Array<ArrayBuffer>] {
  for (let attempt = 1; ; attempt++) {
    const info = socket.info(table);
    try {
      return [info, socket.entries(table, info.bytes)];
    } catch (error) {
      const isChanged = error instanceof SystemError && error.code === 'EAGAIN';
      if (!isChanged || attempt === attempts) throw error;
    }
  }
}

/** By the number of the hook. */
const builtInNames = ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'] as const;

/**
 * Where struct ipt_entry and struct ip6t_entry have the offsets of their target and of the next entry, in all 64-bit
 * kernels.
 */
const layouts = {
  IPv4: { target: 88, next: 90 },
  IPv6: { target: 140, next: 142 },
} as const;
/** struct xt_entry_target: 16 bits of size, 29 characters of name, 8 bits of revision; then the data of the target. */
const targetName = { from: 2, to: 31 };
const targetData = 32;
/** The target of an entry that only names the chain that follows; the last entry of a table has it, too. */
const errorTarget = 'ERROR';
const errorNameLength = 30;

interface Entry {
  readonly offset: number;
  readonly end: number;
  /** Set where a chain that a program made begins. */
  readonly heading: string | undefined;
  /** A jump has the offset of an entry; other targets and verdicts have a negative number or undefined. */
  readonly verdict: number | undefined;
}

/** Takes apart the entries of a table: chain after chain, each with a last entry that is its policy or return. */
export function decodeChains(
  bytes: Uint8Array<ArrayBuffer>,
  hookEntries: TableInfo['hookEntries'],
  family: Family,
): TableChains {
  const entries = [...readEntries(bytes, family)];
  const beginnings = new Map<number, string>();
  for (const [hook, offset] of hookEntries.entries()) {
    if (offset !== undefined) beginnings.set(offset, builtInNames[hook] ?? '');
  }
  for (const { heading, end } of entries) if (heading !== undefined) beginnings.set(end, heading);
  const chains = new Map<string, (string | undefined)[]>();
  let rules: (string | undefined)[] = [];
  for (const { offset, heading, verdict } of entries) {
    if (heading !== undefined) continue;
    const begun = beginnings.get(offset);
    if (begun !== undefined) {
      rules = [];
      chains.set(begun, rules);
    }
    rules.push(verdict === undefined ? undefined : beginnings.get(verdict));
  }
  for (const list of chains.values()) list.pop();
  return chains;
}

function* readEntries(bytes: Uint8Array<ArrayBuffer>, family: Family): Generator<Entry, void> {
  const layout = layouts[family];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let offset = 0; offset < bytes.length; ) {
    const target = offset + view.getUint16(offset + layout.target, hostLittleEndian);
    const end = offset + view.getUint16(offset + layout.next, hostLittleEndian);
    if (end <= offset) throw new RangeError(`entry at ${offset} of a table has no length`);
    const name = text(bytes, target + targetName.from, target + targetName.to);
    const data = target + targetData;
    const heading = name === errorTarget ? text(bytes, data, data + errorNameLength) : undefined;
    const verdict = name === '' ? view.getInt32(data, hostLittleEndian) : undefined;
    yield { offset, end, heading, verdict };
    offset = end;
  }
}

function text(bytes: Uint8Array, from: number, to: number): string {
  const field = bytes.subarray(from, to);
  const end = field.indexOf(0);
  return new TextDecoder().decode(end < 0 ? field : field.subarray(0, end));
}
