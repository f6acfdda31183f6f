/** Test files that run in one emulated machine, one after the other. */
export type Lane = readonly string[];

export const lanes: Readonly<Record<string, Lane>> = {
  /** Tests of ipvs mode, which need a kernel with IPVS. */
  ipvs: [
    'test/ipvs/kernel.test.ts',
    'test/ipvs/real-clusters.test.ts',
    'test/ipvs/operations.test.ts',
    'test/ipvs/hashing.test.ts',
    'test/contract/ipvs.test.ts',
  ],
  /** Tests of nftables mode on the oldest tested kernel, and others that need this kernel or all privileges in it. */
  nftables: [
    'test/kernel/acct.test.ts',
    'test/nftables/table.test.ts',
    'test/nftables/inspection.test.ts',
    'test/nftables/hashing.test.ts',
    'test/ipvs/inspection.test.ts',
    'test/explain/ipvs.test.ts',
    'test/traffic/ipvs.test.ts',
    // Here root may raise the limit of open files; the test needs more than 20,000.
    'test/userspace/idle-connections.test.ts',
    'test/contract/nftables.test.ts',
    'test/contract/nftables-departed.test.ts',
    'test/contract/nftables-fast-path.test.ts',
  ],
  /** Not part of `npm test`: it takes as long as the contract without the fast path. */
  'fast-path': ['test/contract/nftables-fast-path-stories.test.ts'],
};

/** Commands that those tests call, and the Debian package of each. */
export const testTools: Readonly<Record<string, string>> = {
  ip: 'iproute2',
  nft: 'nftables',
  iptables: 'iptables',
  ipset: 'ipset',
  ipvsadm: 'ipvsadm',
  conntrack: 'conntrack',
  ping: 'iputils-ping',
};

/**
 * Kernel modules to load before the first test. The kernel loads others at their first use, which takes seconds in an
 * emulated machine.
 */
export const modules: readonly string[] = [
  'veth',
  'dummy',
  'sctp',
  'nf_tables',
  'nft_chain_nat',
  'nft_masq',
  'nft_numgen',
  'nft_hash',
  'nft_fib_ipv4',
  'nft_fib_ipv6',
  'nft_reject_ipv4',
  'nft_reject_ipv6',
  'nft_ct',
  'nf_flow_table_inet',
  'nft_flow_offload',
  'nf_conntrack_netlink',
  'tcp_diag',
  'nfnetlink_log',
  'nft_log',
  'nfnetlink_acct',
  'nft_compat',
  'ip_vs',
  'ip_vs_rr',
  'ip_vs_mh',
  'ip_set_hash_ipport',
  'ip_set_hash_ipportip',
  'ip_set_hash_ipportnet',
  'ip_set_hash_ip',
  'ip_set_bitmap_port',
  'xt_set',
  'xt_ipvs',
];

/** Which contract runs there: `brief` or `full` (test/contract/brief.ts says what is left out). */
export const contract = 'brief';

/** How many times longer tests wait there. */
export const pace = 3;

/** The machine is ended after this many seconds: several times what the tests of all lanes take on a quiet machine. */
export const limitSeconds = 7_200;
