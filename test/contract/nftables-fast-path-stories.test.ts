/** Every story with all connections on the fast path, as soon as the kernel allows. */
import { labUnavailable } from '../cluster/lab/namespace.ts';
import { flowtablesUnavailable } from '../kernel/flowtables.ts';
import { runContract } from './suite.ts';

runContract({
  mode: 'nftables',
  flags: ['--nftables-fast-path=all', '--nftables-fast-path-after=1'],
  clusters: [['IPv4', 'IPv6']],
  skip: { C53: 'see nftables.test.ts' },
  unavailable: labUnavailable() ?? flowtablesUnavailable(),
  module: import.meta.url,
});
