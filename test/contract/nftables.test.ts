import { runContract } from './suite.ts';

runContract({
  mode: 'nftables',
  clusters: [['IPv4'], ['IPv6'], ['IPv4', 'IPv6']],
  skip: {
    C53: 'a test cannot change the kernel version; a unit test beside src/backends/nftables/preconditions.ts tests the check',
  },
  module: import.meta.url,
});
