import { ownNamespace } from '../cluster/lab/namespace.ts';
import { useFlavour } from '../iptables/flavours.ts';
import { runTraffic } from './suite.ts';

if (ownNamespace() !== undefined) useFlavour('nft');

runTraffic({ mode: 'iptables', module: import.meta.url });
