import type { NftablesSettings } from '../../src/backends/nftables/settings.ts';
import { nodePortAddresses } from '../../src/model/node-port-addresses.ts';

/** Settings of a node at 192.0.2.10 that serves node ports in one network and has no detection of local traffic. */
export const plainSettings: NftablesSettings = {
  family: 'IPv4',
  masqueradeBit: 14,
  masqueradeAll: false,
  localDetector: { kind: 'none' },
  nodePortAddresses: nodePortAddresses('IPv4', ['192.0.2.0/24']),
  nodeIP: '192.0.2.10',
  localhostNodePorts: false,
};
