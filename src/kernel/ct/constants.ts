/** Numbers of ctnetlink (linux/netfilter/nfnetlink_conntrack.h). */

const NFNL_SUBSYS_CTNETLINK = 1;
export const CT_NEW = NFNL_SUBSYS_CTNETLINK << 8;
export const CT_GET = CT_NEW | 1;
export const CT_DELETE = CT_NEW | 2;

export const NFNLGRP_CONNTRACK_NEW = 1;
export const NFNLGRP_CONNTRACK_UPDATE = 2;
export const NFNLGRP_CONNTRACK_DESTROY = 3;

export const CTA = {
  TUPLE_ORIG: 1,
  TUPLE_REPLY: 2,
  STATUS: 3,
  PROTOINFO: 4,
  TIMEOUT: 7,
  MARK: 8,
  COUNTERS_ORIG: 9,
  COUNTERS_REPLY: 10,
  ID: 12,
  ZONE: 18,
  TIMESTAMP: 20,
  MARK_MASK: 21,
  FILTER: 25,
} as const;
export const PROTOINFO_TCP = 1;
export const PROTOINFO_TCP_STATE = 1;
/** TCP_CONNTRACK_* numbers. */
export const TCP = { LAST_ACK: 6, TIME_WAIT: 7, CLOSE: 8 } as const;
export const TUPLE = { IP: 1, PROTO: 2 } as const;
export const IP = { V4_SRC: 1, V4_DST: 2, V6_SRC: 3, V6_DST: 4 } as const;
export const PROTO = { NUM: 1, SRC_PORT: 2, DST_PORT: 3 } as const;

/** For datagrams with one entry each: a few hundred bytes, and a security context that may have some thousand. */
export const entryBatch = { count: 16, capacity: 8_192 };
