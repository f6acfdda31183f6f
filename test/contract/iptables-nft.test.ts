import { ownNamespace } from '../cluster/lab/namespace.ts';
import { useFlavour } from '../iptables/flavours.ts';
import { iptablesSkips } from './iptables-skips.ts';
import { runContract } from './suite.ts';

if (ownNamespace() !== undefined) useFlavour('nft');

runContract({
  mode: 'iptables',
  clusters: [['IPv4'], ['IPv6'], ['IPv4', 'IPv6']],
  skip: iptablesSkips,
  module: import.meta.url,
});
