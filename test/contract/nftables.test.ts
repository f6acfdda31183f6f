import { runContract } from './suite.ts';

runContract({
  mode: 'nftables',
  clusters: [['IPv4'], ['IPv6'], ['IPv4', 'IPv6']],
  skip: {
    C53: 'the kernel of this machine is what it is; the check is tested beside src/backends/nftables/preconditions.ts',
  },
  module: import.meta.url,
});
