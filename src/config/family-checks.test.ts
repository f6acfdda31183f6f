import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkFamilies, type FamilySettings, nodePortAddressesProblem } from './family-checks.ts';

const settings = (over: Partial<FamilySettings> = {}): FamilySettings => ({
  primary: 'IPv4',
  dualStack: false,
  detectLocalMode: 'ClusterCIDR',
  clusterCIDRs: [],
  podCIDRs: [],
  nodePortAddresses: [],
  ipvsExcludeCIDRs: [],
  winkernelSourceVip: '',
  healthzBindAddress: '0.0.0.0:10256',
  metricsBindAddress: '127.0.0.1:10249',
  ...over,
});

for (const [name, over, expected] of [
  ['unset', {}, /is not set/],
  ['one family, nothing looks dual-stack', { nodePortAddresses: ['10.0.0.0/8'] }, undefined],
  [
    'primary only although clusterCIDR is dual-stack',
    { nodePortAddresses: ['10.0.0.0/8'], clusterCIDRs: ['10.0.0.0/8', 'fd00::/64'] },
    /all IPv4 although/,
  ],
  [
    'primary only although podCIDRs are dual-stack',
    { nodePortAddresses: ['fd00::/64'], podCIDRs: ['10.0.0.0/8', 'fd00::/64'], primary: 'IPv6' },
    /all IPv6 although/,
  ],
  [
    'a list that does not parse as a whole is no hint',
    { nodePortAddresses: ['10.0.0.0/8'], ipvsExcludeCIDRs: ['10.0.0.0/8', 'fd00::/64', 'x'] },
    undefined,
  ],
  ['both families', { nodePortAddresses: ['10.0.0.0/8', 'fd00::/64'] }, undefined],
  ['none of the primary family', { nodePortAddresses: ['fd00::/64'] }, /no entry of the primary family IPv4/],
] satisfies [string, Partial<FamilySettings>, RegExp | undefined][]) {
  test(`nodePortAddresses check: ${name}`, () => {
    const problem = nodePortAddressesProblem(settings(over));
    if (expected) assert.match(problem ?? '', expected);
    else assert.equal(problem, undefined);
  });
}

const v6 = ['fd00::/64'];

for (const [name, over, mentions, fatal] of [
  ['nothing wrong', { clusterCIDRs: ['10.0.0.0/8'], podCIDRs: ['10.1.0.0/24'] }, [], false],
  ['mixed lists are fine', { clusterCIDRs: ['fd00::/64', '10.0.0.0/8'] }, [], false],
  ['clusterCIDR, used, single-stack', { clusterCIDRs: v6 }, ['clusterCIDR'], true],
  ['clusterCIDR, used, dual-stack', { clusterCIDRs: v6, dualStack: true }, ['clusterCIDR'], false],
  ['clusterCIDR, not used', { clusterCIDRs: v6, detectLocalMode: 'NodeCIDR' }, ['clusterCIDR'], false],
  ['podCIDRs, used', { podCIDRs: v6, detectLocalMode: 'NodeCIDR' }, ['podCIDRs'], true],
  [
    'podCIDRs, used, dual-stack',
    { podCIDRs: v6, detectLocalMode: 'NodeCIDR', dualStack: true },
    ['podCIDRs'],
    true,
  ],
  ['podCIDRs, not used', { podCIDRs: v6 }, ['podCIDRs'], false],
  ['source VIP, even dual-stack', { winkernelSourceVip: 'fd00::1', dualStack: true }, ['sourceVip'], false],
  ['excluded CIDRs', { ipvsExcludeCIDRs: v6 }, ['excludeCIDRs'], false],
  ['excluded CIDRs, dual-stack', { ipvsExcludeCIDRs: v6, dualStack: true }, [], false],
  ['healthz address', { healthzBindAddress: '[fd00::1]:10256' }, ['healthzBindAddress'], false],
  ['healthz address, dual-stack', { healthzBindAddress: '[fd00::1]:10256', dualStack: true }, [], false],
  ['healthz address, unspecified', { healthzBindAddress: '[::]:10256' }, [], false],
  ['metrics address', { metricsBindAddress: '[::1]:10249' }, ['metricsBindAddress'], false],
  [
    'IPv4 address on an IPv6 node',
    { primary: 'IPv6', healthzBindAddress: '' },
    ['metricsBindAddress'],
    false,
  ],
  ['a bare address', { metricsBindAddress: 'fd00::1' }, ['metricsBindAddress'], false],
] satisfies [string, Partial<FamilySettings>, string[], boolean][]) {
  test(`family check: ${name}`, () => {
    const found = checkFamilies(settings(over));
    assert.equal(found.problems.length, mentions.length, found.problems.join('; '));
    for (const [i, word] of mentions.entries()) assert.match(found.problems[i] ?? '', new RegExp(word));
    assert.equal(found.fatal !== undefined, fatal);
  });
}

test('a fatal finding lists every problem', () => {
  const one = checkFamilies(settings({ clusterCIDRs: v6 }));
  assert.equal(
    one.fatal,
    'kube-proxy configuration is incorrect: clusterCIDR ["fd00::/64"] is all IPv6 but the primary family is IPv4',
  );
  const two = checkFamilies(settings({ clusterCIDRs: v6, podCIDRs: v6 }));
  assert.match(
    two.fatal ?? '',
    /^kube-proxy configuration is incorrect: \[clusterCIDR .*, spec\.podCIDRs .*\]$/,
  );
});
