import { messageOf } from '../../lib/thrown.ts';
import { hostLittleEndian } from '../../native/byte-order.ts';
import type { Logger } from '../../obs/log.ts';
import { align, headerLength, NLA_F_NESTED, NLMSG_MIN_TYPE } from './constants.ts';
import { forEachMessage, type NetlinkMessage } from './reader.ts';

/**
 * Netlink datagrams as text in the layout of libmnl (`nft --debug=mnl`): four bytes a row. The requests of two programs
 * can be compared with diff.
 */

const rule = '----------------\t------------------';

/** From this verbosity on the log has all datagrams to and from the kernel. */
const datagramVerbosity = 10;

/** The `onDatagram` option of a socket; undefined when the log is not verbose enough to show datagrams. */
export function datagramLog(
  logger: Logger,
): ((direction: 'send' | 'receive', bytes: Uint8Array) => void) | undefined {
  const verbose = logger.v(datagramVerbosity);
  if (!verbose.enabled) return undefined;
  return (direction, bytes) => verbose.info('Netlink', { direction, datagram: formatDatagram(bytes) });
}

/** The text of a datagram, with an error for malformed bytes. `familyHeader` is the length of the family's header. */
export function formatDatagram(bytes: Uint8Array, familyHeader = 4): string {
  const lines: string[] = [];
  try {
    forEachMessage(bytes, (message) => formatMessage(message, familyHeader, lines));
  } catch (error) {
    lines.push(`(${messageOf(error)})`);
  }
  return lines.join('\n');
}

function formatMessage(message: NetlinkMessage, familyHeader: number, lines: string[]): void {
  const flag = (bit: number, letter: string) => (message.flags & bit ? letter : '-');
  const flags = flag(1, 'R') + flag(2, 'M') + flag(4, 'A') + flag(8, 'E');
  lines.push(rule);
  lines.push(`|  ${digits(message.length, 10)}  |\t| message length |`);
  lines.push(`| ${digits(message.type, 5)} | ${flags} |\t|  type | flags  |`);
  lines.push(`|  ${digits(message.sequence, 10)}  |\t| sequence number|`);
  lines.push(`|  ${digits(message.port, 10)}  |\t|     port ID    |`);
  lines.push(rule);
  // Acknowledgements and batch marks have no family header and no attributes.
  const extra = message.type < NLMSG_MIN_TYPE ? message.length - headerLength : familyHeader;
  formatPayload(message.payload(), extra, lines);
  lines.push(rule);
}

function formatPayload(payload: Uint8Array, extra: number, lines: string[]): void {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  let dataEnd = align(extra);
  for (let at = 0; at < payload.length; at += 4) {
    const row = payload.subarray(at, at + 4);
    if (at < align(extra)) lines.push(`| ${hex(row)}  |\t|  extra header  |`);
    else if (at < dataEnd || row.length < 4)
      lines.push(`| ${hex(row)}  |\t|      data      |\t ${printable(row)}`);
    else dataEnd = formatAttribute(view, at, lines);
  }
}

/** Prints an attribute's header; returns the offset where its data end or its first nested attribute begins. */
function formatAttribute(view: DataView, at: number, lines: string[]): number {
  const length = view.getUint16(at, hostLittleEndian);
  const type = view.getUint16(at + 2, hostLittleEndian);
  const nested = (type & NLA_F_NESTED) !== 0;
  const flags = (nested ? 'N' : '-') + (type & 0x4000 ? 'B' : '-');
  lines.push(`|${digits(length, 5)}|${flags}|${digits(type & 0x3fff, 5)}|\t|len |flags| type|`);
  return nested ? at + 4 : at + align(length);
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0');
}

function hex(row: Uint8Array): string {
  return Array.from(row, (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}

function printable(row: Uint8Array): string {
  return Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ' ')).join(' ');
}
