import { AttributeMap } from '../netlink/attribute-map.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import type { MessageWriter } from '../netlink/writer.ts';

/** nfacct messages (linux/netfilter/nfnetlink_acct.h): named counters that iptables rules can count in. */

const NFNL_SUBSYS_ACCT = 7;
export const ACCT_NEW = NFNL_SUBSYS_ACCT << 8;
export const ACCT_GET = ACCT_NEW | 1;
const NFACCT = { NAME: 1, PACKETS: 2, BYTES: 3 } as const;
const unspecifiedFamily = 0;
/** The longest name that the kernel keeps, without the terminating NUL. */
export const maxNameLength = 31;

/** A counter and its values. */
export interface AcctObject {
  readonly name: string;
  readonly packets: bigint;
  readonly bytes: bigint;
}

/** Writes the body of a request that names a counter. Throws RangeError for a name that the kernel cannot keep. */
export function writeName(writer: MessageWriter, name: string): void {
  if (name === '' || name.length > maxNameLength) {
    throw new RangeError(`counter name ${JSON.stringify(name)} must have 1 to ${maxNameLength} characters`);
  }
  writer.nfgenmsg(unspecifiedFamily);
  writer.string(NFACCT.NAME, name);
}

/** Reads a counter from the kernel's answer; throws NetlinkFormatError when a value is missing. */
export function readAcctObject(message: NetlinkMessage): AcctObject {
  const attributes = AttributeMap.of(message);
  const name = attributes.string(NFACCT.NAME);
  const packets = attributes.u64Be(NFACCT.PACKETS);
  const bytes = attributes.u64Be(NFACCT.BYTES);
  if (name === undefined || packets === undefined || bytes === undefined) {
    throw new NetlinkFormatError('nfacct object without name, packets or bytes');
  }
  return { name, packets, bytes };
}
