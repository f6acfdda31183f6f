import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configProblems } from './config-file-status.ts';
import { connectedSamples, type SourceStatus, sourceProblems, staleSamples } from './source-status.ts';

const watch = { since: 1000, reason: undefined, lastEvent: undefined };
const source: SourceStatus = {
  kind: 'APIServer',
  location: 'https://192.0.2.9:6443',
  watches: [
    { ...watch, resource: 'nodes', state: 'connected' },
    { ...watch, resource: 'services', state: 'broken', reason: 'gone', since: 3000 },
    { ...watch, resource: 'endpointSlices', state: 'broken', reason: 'gone', since: 2000 },
    { ...watch, resource: 'serviceCIDRs', state: 'connecting', reason: 'gone' },
  ],
  errors: [],
};

test('watches that are broken for the same reason are one problem, and those that reconnect are none', () => {
  assert.deepEqual(sourceProblems(source), [
    {
      kind: 'WatchBroken',
      since: 2000,
      isOutage: false,
      text: 'the API server https://192.0.2.9:6443 sends no changes of services, endpointslices, so Services work as last known: gone',
    },
  ]);
});

test('a watch counts as connected, or as stale since its last known state', () => {
  assert.deepEqual(
    connectedSamples(source.watches).map(({ labels, value }) => [labels.resource, value]),
    [
      ['nodes', 1],
      ['services', 0],
      ['endpointslices', 0],
      ['servicecidrs', 0],
    ],
  );
  assert.deepEqual(
    staleSamples(source.watches, 5000).map(({ value }) => value),
    [0, 2, 3, 4],
  );
});

test('the errors of one manifest are one problem', () => {
  const error = { path: '/m/a.yaml', position: '3:1', reason: 'bad', since: 7 };
  const errors = [error, { ...error, reason: 'worse' }, { ...error, path: '/m/b.yaml', position: '' }];
  assert.deepEqual(
    sourceProblems({ ...source, watches: [], errors }).map(({ kind, text }) => `${kind}: ${text}`),
    [
      'ManifestUnreadable: the manifest /m/a.yaml is not (fully) in effect: 3:1: bad (and 1 further error)',
      'ManifestUnreadable: the manifest /m/b.yaml is not (fully) in effect: bad',
    ],
  );
});

test('a configuration file is a problem only when a restart would fail', () => {
  const file = { path: '/c.yaml', hash: 'ab', readAt: 0 };
  const problems = (state: 'InUse' | 'Changed' | 'Unusable' | 'Unknown') =>
    configProblems({ ...file, onDisk: { state, since: 5, reason: 'bad\n  line 2' } });
  assert.deepEqual([...problems('InUse'), ...problems('Changed'), ...problems('Unknown')], []);
  assert.deepEqual(configProblems(undefined), []);
  assert.deepEqual(problems('Unusable'), [
    {
      kind: 'ConfigFileUnusable',
      since: 5,
      isOutage: false,
      text: 'the configuration file /c.yaml cannot be used, so a restart would fail: bad line 2',
    },
  ]);
});
