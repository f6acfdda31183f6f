/** Numbers of the generic netlink family IPVS (linux/ip_vs.h). */

export const IPVS_FAMILY = 'IPVS';
export const IPVS_VERSION = 1;

export const IPVS_CMD = {
  NEW_SERVICE: 1,
  SET_SERVICE: 2,
  DEL_SERVICE: 3,
  GET_SERVICE: 4,
  NEW_DEST: 5,
  SET_DEST: 6,
  DEL_DEST: 7,
  GET_DEST: 8,
  SET_CONFIG: 12,
  FLUSH: 17,
} as const;

export const IPVS_ATTR = { SERVICE: 1, DEST: 2, TIMEOUT_TCP: 4, TIMEOUT_TCP_FIN: 5, TIMEOUT_UDP: 6 } as const;

export const SVC_ATTR = {
  AF: 1,
  PROTOCOL: 2,
  ADDR: 3,
  PORT: 4,
  FWMARK: 5,
  SCHED_NAME: 6,
  FLAGS: 7,
  TIMEOUT: 8,
  NETMASK: 9,
} as const;

export const DEST_ATTR = {
  ADDR: 1,
  PORT: 2,
  FWD_METHOD: 3,
  WEIGHT: 4,
  U_THRESH: 5,
  L_THRESH: 6,
  ACTIVE_CONNS: 7,
  INACT_CONNS: 8,
  PERSIST_CONNS: 9,
  ADDR_FAMILY: 11,
} as const;

/** The kernel sets this flag on every virtual server in its tables. */
export const IP_VS_SVC_F_HASHED = 0x2;
/** The part of a real server's flags that is the forwarding method. */
export const IP_VS_CONN_F_FWD_MASK = 0x7;
