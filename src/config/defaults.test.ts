import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SECOND } from '../lib/duration.ts';
import { decodeConfig } from './decode.ts';
import { applyPlatformDefaults, defaultConfig } from './defaults.ts';
import type { ConfigDraft } from './types.ts';
import { API_VERSION, KIND } from './v1alpha1.ts';

async function configOf(fields: object): Promise<ConfigDraft> {
  return (await decodeConfig(JSON.stringify({ apiVersion: API_VERSION, kind: KIND, ...fields }))).config;
}

const addresses: [fields: object, healthz: string, metrics: string][] = [
  [{}, '0.0.0.0:10256', '127.0.0.1:10249'],
  [{ bindAddress: '10.0.0.1' }, '0.0.0.0:10256', '127.0.0.1:10249'],
  [{ bindAddress: '::' }, '[::]:10256', '[::1]:10249'],
  [{ bindAddress: 'fd00::1' }, '[::]:10256', '[::1]:10249'],
  [{ bindAddress: 'nonsense' }, '[::]:10256', '[::1]:10249'],
  [{ healthzBindAddress: '1.2.3.4', metricsBindAddress: '::' }, '1.2.3.4:10256', '[::]:10249'],
  [{ healthzBindAddress: '1.2.3.4:9', metricsBindAddress: '[::1]:9' }, '1.2.3.4:9', '[::1]:9'],
  [{ healthzBindAddress: 'foo', metricsBindAddress: '[::1]' }, 'foo', '[::1]'],
  [{ healthzBindAddress: '', metricsBindAddress: null }, '0.0.0.0:10256', '127.0.0.1:10249'],
];
for (const [fields, healthz, metrics] of addresses) {
  test(`addresses of ${JSON.stringify(fields)}`, async () => {
    const config = await configOf(fields);
    assert.deepEqual([config.healthzBindAddress, config.metricsBindAddress], [healthz, metrics]);
  });
}

const periods: [mode: string, minSyncPeriod: bigint][] = [
  ['', SECOND],
  ['iptables', SECOND],
  ['nftables', SECOND],
  ['userspace', SECOND],
  ['ipvs', 0n],
];
for (const [mode, minSyncPeriod] of periods) {
  test(`an explicit minSyncPeriod of 0s in mode '${mode}'`, async () => {
    const zero = { syncPeriod: '0s', minSyncPeriod: '0s' };
    const config = await configOf({ mode, iptables: zero, ipvs: zero, nftables: zero });
    assert.deepEqual([config.syncPeriod, config.minSyncPeriod], [30n * SECOND, minSyncPeriod]);
  });
}

test('the periods and masqueradeAll come from the section of the mode', async () => {
  const fields = {
    iptables: { syncPeriod: '1m', masqueradeAll: true },
    ipvs: { syncPeriod: '2m' },
    nftables: { syncPeriod: '3m' },
  };
  const picked = async (mode: string) => {
    const { syncPeriod, linux } = await configOf({ ...fields, mode });
    return [syncPeriod / (60n * SECOND), linux.masqueradeAll];
  };
  assert.deepEqual(await picked(''), [1n, true]);
  assert.deepEqual(await picked('kernelspace'), [1n, true]);
  assert.deepEqual(await picked('ipvs'), [2n, true]);
  assert.deepEqual(await picked('nftables'), [3n, false]);
});

test('zero is a value for fields that can be null and unset for the others', async () => {
  const config = await configOf({
    oomScoreAdj: 0,
    iptables: { masqueradeBit: 0, localhostNodePorts: false },
    nftables: { masqueradeBit: 0 },
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    clientConnection: { qps: 0, burst: 0, contentType: '' },
    logging: { format: '', flushFrequency: 0 },
    configSyncPeriod: '0s',
  });
  const defaults = defaultConfig();
  assert.equal(config.linux.oomScoreAdj, 0);
  assert.deepEqual(config.iptables, { masqueradeBit: 0, localhostNodePorts: false });
  assert.deepEqual(config.nftables, { masqueradeBit: 0 });
  assert.deepEqual(config.linux.conntrack, {
    ...defaults.linux.conntrack,
    maxPerCore: 0,
    min: 0,
    tcpEstablishedTimeout: 0n,
    tcpCloseWaitTimeout: 0n,
  });
  assert.deepEqual(config.clientConnection, defaults.clientConnection);
  assert.deepEqual(config.logging, defaults.logging);
  assert.equal(config.configSyncPeriod, defaults.configSyncPeriod);
});

test('two calls of defaultConfig share no mutable value', () => {
  const config = defaultConfig();
  config.clientConnection.burst = 99;
  config.linux.conntrack.min = 1;
  config.logging.options.text.splitStream = true;
  config.detectLocal.clusterCIDRs.push('x');
  const fresh = defaultConfig();
  assert.equal(fresh.clientConnection.burst, 10);
  assert.equal(fresh.linux.conntrack.min, 131072);
  assert.equal(fresh.logging.options.text.splitStream, false);
  assert.deepEqual(fresh.detectLocal.clusterCIDRs, []);
});

test('platform defaults set mode, detectLocalMode and nodePortAddresses', () => {
  const apply = (fields: Partial<ConfigDraft>) => {
    const { config, modeDefaulted } = applyPlatformDefaults({ ...defaultConfig(), ...fields });
    return [config.mode, modeDefaulted, config.detectLocalMode, config.nodePortAddresses];
  };
  assert.deepEqual(apply({}), ['iptables', true, 'ClusterCIDR', null]);
  assert.deepEqual(apply({ mode: 'nftables' }), ['nftables', false, 'ClusterCIDR', ['primary']]);
  assert.deepEqual(apply({ mode: 'nftables', nodePortAddresses: [] }), [
    'nftables',
    false,
    'ClusterCIDR',
    ['primary'],
  ]);
  assert.deepEqual(apply({ mode: 'nftables', nodePortAddresses: ['all'] }), [
    'nftables',
    false,
    'ClusterCIDR',
    ['all'],
  ]);
  assert.deepEqual(apply({ mode: 'ipvs', detectLocalMode: 'NodeCIDR' }), ['ipvs', false, 'NodeCIDR', null]);
});
