import { runContract } from './suite.ts';

const noSctp = 'the kernel that this runs on has no SCTP sockets';

runContract({
  mode: 'nftables',
  clusters: [['IPv4'], ['IPv6'], ['IPv4', 'IPv6']],
  skip: {
    C18: noSctp,
    C37: noSctp,
    C53: 'the kernel of this machine is what it is; the check is tested beside src/backends/nftables/preconditions.ts',
  },
  module: import.meta.url,
});
