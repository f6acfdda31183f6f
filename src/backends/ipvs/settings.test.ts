import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultConfig } from '../../config/defaults.ts';
import { formatCIDR } from '../../model/ip.ts';
import { nodePortAddresses } from '../../model/node-port-addresses.ts';
import { settingsOf } from './settings.ts';

const node = {
  family: 'IPv4',
  nodeIP: '192.0.2.5',
  nodePortAddresses: nodePortAddresses('IPv4', []),
  localDetector: { kind: 'none' },
} as const;

test('the default configuration has the settings of upstream', () => {
  const { scheduler, masqueradeBit, masqueradeAll, excludeCIDRs, nodeIP } = settingsOf({
    ...node,
    config: defaultConfig(),
  });
  assert.deepEqual(
    { scheduler, masqueradeBit, masqueradeAll, excludeCIDRs, nodeIP },
    { scheduler: 'rr', masqueradeBit: 14, masqueradeAll: false, excludeCIDRs: [], nodeIP: '192.0.2.5' },
  );
});

test('excluded CIDRs are those of the family; the mark is that of iptables mode', () => {
  const config = defaultConfig();
  config.ipvs.excludeCIDRs = ['10.1.1.9/24', 'fd00::/8'];
  config.ipvs.scheduler = 'mh';
  config.iptables.masqueradeBit = 0;
  config.linux.masqueradeAll = true;
  const { scheduler, masqueradeBit, masqueradeAll, excludeCIDRs } = settingsOf({ ...node, config });
  assert.deepEqual(
    { scheduler, masqueradeBit, masqueradeAll },
    { scheduler: 'mh', masqueradeBit: 0, masqueradeAll: true },
  );
  assert.deepEqual(excludeCIDRs.map(formatCIDR), ['10.1.1.0/24']);
});
