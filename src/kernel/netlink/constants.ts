/** Numbers of the netlink protocol itself; those of a family are beside its codec. */

export const NETLINK_ROUTE = 0;
export const NETLINK_SOCK_DIAG = 4;
export const NETLINK_NETFILTER = 12;
export const NETLINK_GENERIC = 16;

export const NLMSG_NOOP = 1;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;
/** Message types below this one belong to the protocol, not to a family. */
export const NLMSG_MIN_TYPE = 16;

export const NLM_F_REQUEST = 0x1;
export const NLM_F_MULTI = 0x2;
export const NLM_F_ACK = 0x4;
export const NLM_F_DUMP_INTR = 0x10;
/** Requests that read: NLM_F_ROOT | NLM_F_MATCH. */
export const NLM_F_DUMP = 0x300;
/** Requests that create an object. */
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_APPEND = 0x800;
/** Acknowledgements. */
export const NLM_F_CAPPED = 0x100;
export const NLM_F_ACK_TLVS = 0x200;

export const NLMSGERR_ATTR_MSG = 1;
export const NLMSGERR_ATTR_OFFS = 2;
export const NLMSGERR_ATTR_MISS_TYPE = 5;

export const NLA_F_NESTED = 0x8000;
export const NLA_TYPE_MASK = 0x3fff;

export const headerLength = 16;
/** struct nfgenmsg, which every netfilter message begins with. */
export const nfgenmsgLength = 4;
export const attributeHeaderLength = 4;
/** Largest attribute: its length, header included, is a 16-bit number. */
export const maxAttributeLength = 0xffff;

/** Socket options at level SOL_NETLINK. */
export const NETLINK_ADD_MEMBERSHIP = 1;
export const NETLINK_DROP_MEMBERSHIP = 2;
export const NETLINK_CAP_ACK = 10;
export const NETLINK_EXT_ACK = 11;

/** Rounds up to netlink's alignment of 4 bytes. */
export function align(length: number): number {
  return (length + 3) & ~3;
}
