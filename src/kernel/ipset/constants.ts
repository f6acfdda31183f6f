/** Numbers of the ipset netlink protocol (linux/netfilter/ipset/ip_set.h). */

const NFNL_SUBSYS_IPSET = 6;

/** Message types. */
export const IPSET_MSG = {
  PROTOCOL: (NFNL_SUBSYS_IPSET << 8) | 1,
  CREATE: (NFNL_SUBSYS_IPSET << 8) | 2,
  DESTROY: (NFNL_SUBSYS_IPSET << 8) | 3,
  FLUSH: (NFNL_SUBSYS_IPSET << 8) | 4,
  LIST: (NFNL_SUBSYS_IPSET << 8) | 7,
  ADD: (NFNL_SUBSYS_IPSET << 8) | 9,
  DEL: (NFNL_SUBSYS_IPSET << 8) | 10,
  TYPE: (NFNL_SUBSYS_IPSET << 8) | 13,
} as const;

/** The oldest protocol version, which every kernel since 2.6.39 supports. */
export const IPSET_PROTOCOL = 6;

/** Attributes of a message. */
export const IPSET_ATTR = {
  PROTOCOL: 1,
  SETNAME: 2,
  TYPENAME: 3,
  REVISION: 4,
  FAMILY: 5,
  DATA: 7,
  ADT: 8,
  LINENO: 9,
  REVISION_MIN: 10,
} as const;

/** Attributes of a set or an entry. */
export const DATA_ATTR = {
  IP: 1,
  PORT: 4,
  PORT_TO: 5,
  PROTO: 7,
  LINENO: 9,
  HASHSIZE: 18,
  MAXELEM: 19,
  IP2: 20,
  CIDR2: 21,
  REFERENCES: 25,
} as const;

export const IPADDR = { IPV4: 1, IPV6: 2 } as const;

/** Flag of integers and addresses in network byte order; ipset refuses them without it. */
export const NLA_F_NET_BYTEORDER = 0x4000;

/** Longest name of a set, without the terminating NUL. */
export const maxSetNameLength = 31;
