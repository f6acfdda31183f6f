import type { Hook, NftFamily, SetFlag } from './objects.ts';

/** Numbers of the nf_tables protocol (linux/netfilter/nf_tables.h), grouped as that file groups them. */

export const NFNL_SUBSYS_NFTABLES = 10;
export const NFNL_MSG_BATCH_BEGIN = 16;
export const NFNL_MSG_BATCH_END = 17;
export const NFNL_BATCH_GENID = 1;
export const NFNLGRP_NFTABLES = 7;
export const NFNLGRP_NFTRACE = 9;

/** Message kinds within the subsystem. */
export const NFT_MSG = {
  NEWTABLE: 0,
  GETTABLE: 1,
  DELTABLE: 2,
  NEWCHAIN: 3,
  GETCHAIN: 4,
  DELCHAIN: 5,
  NEWRULE: 6,
  GETRULE: 7,
  DELRULE: 8,
  NEWSET: 9,
  GETSET: 10,
  DELSET: 11,
  NEWSETELEM: 12,
  GETSETELEM: 13,
  DELSETELEM: 14,
  NEWGEN: 15,
  GETGEN: 16,
  TRACE: 17,
  NEWOBJ: 18,
  GETOBJ: 19,
  DELOBJ: 20,
  NEWFLOWTABLE: 22,
  GETFLOWTABLE: 23,
  DELFLOWTABLE: 24,
} as const;

export type NftMessageKind = (typeof NFT_MSG)[keyof typeof NFT_MSG];

/** The netlink message type of a message kind. */
export function messageType(kind: NftMessageKind): number {
  return (NFNL_SUBSYS_NFTABLES << 8) | kind;
}

/** The message kind of a netlink message type; undefined for other subsystems. */
export function messageKind(type: number): number | undefined {
  return type >> 8 === NFNL_SUBSYS_NFTABLES ? type & 0xff : undefined;
}

export const NFTA_LIST_ELEM = 1;
export const NFT_TABLE_F_OWNER = 2;
export const NFTA_TABLE = { NAME: 1, FLAGS: 2, USERDATA: 6 } as const;
export const NFTA_CHAIN = { TABLE: 1, NAME: 3, HOOK: 4, POLICY: 5, TYPE: 7, USERDATA: 12 } as const;
export const NFTA_HOOK = { HOOKNUM: 1, PRIORITY: 2 } as const;
export const NFTA_RULE = { TABLE: 1, CHAIN: 2, HANDLE: 3, EXPRESSIONS: 4, USERDATA: 7 } as const;
export const NFTA_SET = {
  TABLE: 1,
  NAME: 2,
  FLAGS: 3,
  KEY_TYPE: 4,
  KEY_LEN: 5,
  DATA_TYPE: 6,
  DATA_LEN: 7,
  DESC: 9,
  ID: 10,
  TIMEOUT: 11,
  GC_INTERVAL: 12,
  USERDATA: 13,
} as const;
export const NFTA_SET_DESC = { SIZE: 1, CONCAT: 2 } as const;
export const NFTA_SET_FIELD_LEN = 1;
export const NFTA_SET_ELEM_LIST = { TABLE: 1, SET: 2, ELEMENTS: 3, SET_ID: 4 } as const;
export const NFTA_SET_ELEM = {
  KEY: 1,
  DATA: 2,
  FLAGS: 3,
  TIMEOUT: 4,
  EXPIRATION: 5,
  USERDATA: 6,
  EXPR: 7,
  KEY_END: 10,
} as const;
export const NFT_SET_ELEM_INTERVAL_END = 1;
/** The element for all keys that no other element has. */
export const NFT_SET_ELEM_CATCHALL = 2;
export const NFTA_OBJ = { TABLE: 1, NAME: 2, TYPE: 3, DATA: 4, USERDATA: 8 } as const;
export const NFT_OBJECT_COUNTER = 1;
export const NFTA_COUNTER = { BYTES: 1, PACKETS: 2 } as const;
export const NFTA_FLOWTABLE = { TABLE: 1, NAME: 2, HOOK: 3, FLAGS: 7 } as const;
export const NFTA_FLOWTABLE_HOOK = { NUM: 1, PRIORITY: 2, DEVS: 3 } as const;
export const NFTA_DEVICE_NAME = 1;
/** The only hook of flowtables: packets that a device has received. */
export const NF_NETDEV_INGRESS = 0;
/** Packets on the fast path count in connection tracking. */
export const NFT_FLOWTABLE_COUNTER = 2;
export const NFTA_GEN = { ID: 1, PROC_PID: 2, PROC_NAME: 3 } as const;
export const NFTA_EXPR = { NAME: 1, DATA: 2 } as const;
export const NFTA_DATA = { VALUE: 1, VERDICT: 2 } as const;
export const NFTA_VERDICT = { CODE: 1, CHAIN: 2 } as const;

/** Data type number of verdict maps. */
export const NFT_DATA_VERDICT = 0xffffff00;

export const verdictCodes = { drop: 0, accept: 1, continue: -1, jump: -3, goto: -4, return: -5 } as const;

export const familyNumbers: Readonly<Record<NftFamily, number>> = {
  inet: 1,
  ip: 2,
  arp: 3,
  netdev: 5,
  bridge: 7,
  ip6: 10,
};

export const hookNumbers: Readonly<Record<Hook, number>> = {
  prerouting: 0,
  input: 1,
  forward: 2,
  output: 3,
  postrouting: 4,
};

export const setFlagBits: Readonly<Record<SetFlag, number>> = {
  anonymous: 0x1,
  constant: 0x2,
  interval: 0x4,
  timeout: 0x10,
  dynamic: 0x20,
};
export const NFT_SET_MAP = 0x8;
export const NFT_SET_CONCAT = 0x80;

/** Names of the bits set in a word. */
export function namesOf<K extends string>(bits: Readonly<Record<K, number>>, word: number): K[] {
  const names: K[] = [];
  for (const name in bits) if (word & bits[name]) names.push(name);
  return names;
}

/** The word with the bits of these names. */
export function bitsOf<K extends string>(
  bits: Readonly<Record<K, number>>,
  names: readonly K[] | undefined,
): number {
  return names?.reduce((word, name) => word | bits[name], 0) ?? 0;
}
