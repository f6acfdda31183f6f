import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultConfig } from './defaults.ts';
import { configChange, fieldChanges, fieldPaths } from './live-fields.ts';
import type { StructType } from './schema.ts';
import type { ConfigDraft } from './types.ts';
import { v1alpha1 } from './v1alpha1.ts';

const base: ConfigDraft = { ...defaultConfig(), mode: 'nftables' };

function leaves({ fields }: StructType): string[] {
  return Object.entries(fields).flatMap(([name, { type }]) =>
    type.kind === 'struct' ? leaves(type).map((path) => `${name}.${path}`) : [name],
  );
}

test('for every field of the file, the table says whether a change of it is live or needs a restart', () => {
  assert.deepEqual(Object.keys(fieldChanges), leaves(v1alpha1));
  assert.deepEqual([...fieldPaths], leaves(v1alpha1));
});

test('the same configuration changes nothing', () => {
  const change = configChange(base, structuredClone(base), false);
  assert.deepEqual(change, { fields: [], restart: [], parts: new Set() });
});

test('a change names its fields and the parts of the program that take it up', () => {
  const to: ConfigDraft = {
    ...base,
    nodePortAddresses: ['primary'],
    syncPeriod: 7_000_000_000n,
    logging: { ...base.logging, verbosity: 4, vmodule: [{ filePattern: 'a*', verbosity: 2 }] },
    linux: { ...base.linux, masqueradeAll: true, conntrack: { ...base.linux.conntrack, min: 5 } },
    detectLocal: { ...base.detectLocal, clusterCIDRs: ['10.0.0.0/8'] },
    configSyncPeriod: 1n,
  };
  const { fields, restart, parts } = configChange(base, to, false);
  assert.deepEqual(fields, [
    'logging.verbosity',
    'logging.vmodule',
    'nftables.masqueradeAll',
    'nftables.syncPeriod',
    'clusterCIDR',
    'nodePortAddresses',
    'conntrack.min',
    'configSyncPeriod',
  ]);
  assert.deepEqual(restart, []);
  assert.deepEqual([...parts].sort(), ['conntrack', 'logging', 'rules']);
});

test('mode, node identity and feature gates need a restart, also when live fields change with them', () => {
  const to: ConfigDraft = {
    ...base,
    hostnameOverride: 'other',
    bindAddress: '::',
    featureGates: { WatchListClient: false },
    linux: { ...base.linux, oomScoreAdj: 5 },
    mode: 'ipvs',
  };
  const { restart } = configChange(base, to, false);
  const fields = restart.map(({ field }) => field);
  assert.deepEqual(fields, ['featureGates', 'hostnameOverride', 'bindAddress', 'mode']);
  assert.ok(restart.every(({ reason }) => reason.length > 20));
});

test('where connections go through the process, a change of rules needs a restart and one of the log does not', () => {
  const rules = { ...base, nodePortAddresses: ['primary'] };
  assert.deepEqual(
    configChange(base, rules, true).restart.map(({ field }) => field),
    ['nodePortAddresses'],
  );
  const log = { ...base, logging: { ...base.logging, verbosity: 4 } };
  assert.deepEqual(configChange(base, log, true).restart, []);
});
