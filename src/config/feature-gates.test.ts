import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FeatureGates, type Gate, knownGates } from './feature-gates.ts';
import { gateDependents } from './feature-gates-data.ts';

const vector = new URL('../../test/vectors/cli/feature-gates.json', import.meta.url);

test('alpha and beta gates are those upstream lists, with stage and default', () => {
  const recorded: { gates: Pick<Gate, 'name' | 'stage' | 'default'>[] } = JSON.parse(
    readFileSync(vector, 'utf8'),
  );
  const listed = knownGates().filter(({ stage }) => stage === 'ALPHA' || stage === 'BETA');
  assert.deepEqual(
    listed.map(({ name, stage, default: value }) => ({ name, stage, default: value })),
    recorded.gates.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  );
  assert.ok(listed.every(({ locked }) => !locked));
});

test('no gate is listed twice, every dependency is listed, and only finished gates are locked', () => {
  const names = knownGates().map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(names, names.toSorted());
  const linked = Object.entries(gateDependents).flatMap(([needed, gates]) => [needed, ...gates.split(/\s+/)]);
  assert.deepEqual(
    linked.filter((name) => !names.includes(name)),
    [],
  );
  assert.ok(
    knownGates().every(
      ({ stage, locked, name }) =>
        /^[A-Z][A-Za-z0-9]+$/.test(name) && (!locked || stage === 'GA' || stage === 'DEPRECATED'),
    ),
  );
});

/** Gates that matter to this program: [name, stage, default, locked]. */
const consulted: [string, string, boolean, boolean][] = [
  ['KubeProxyIPVS', 'DEPRECATED', true, false],
  ['KubeProxyNFTablesLocalhostNodePorts', 'ALPHA', false, false],
  ['NFTablesNetlink', 'BETA', true, false],
  ['NFTablesProxyMode', 'GA', true, true],
  ['AllowServiceExternalIPs', 'GA', true, false],
  ['MultiCIDRServiceAllocator', 'GA', true, true],
  ['PreferSameTrafficDistribution', 'GA', true, true],
  ['WinDSR', 'GA', true, true],
  ['WinOverlay', 'GA', true, true],
  ['ComponentFlagz', 'BETA', true, false],
  ['ComponentStatusz', 'BETA', true, false],
  ['NativeHistograms', 'BETA', true, false],
  ['ContextualLogging', 'BETA', true, false],
  ['LoggingAlphaOptions', 'ALPHA', false, false],
  ['LoggingBetaOptions', 'BETA', true, false],
  ['WatchListClient', 'BETA', true, false],
  ['InformerResourceVersion', 'GA', true, false],
  ['InOrderInformers', 'GA', true, true],
  ['ClientsAllowCBOR', 'ALPHA', false, false],
  ['StorageVersionMigrator', 'GA', true, false],
  ['DisableNodeKubeProxyVersion', 'DEPRECATED', true, true],
];
for (const [name, stage, value, locked] of consulted) {
  test(`${name} is ${stage} and ${value ? 'on' : 'off'}`, () => {
    assert.deepEqual(
      knownGates().find((gate) => gate.name === name),
      { name, stage, default: value, locked },
    );
    assert.equal(FeatureGates.of({}).enabled(name), value);
  });
}

test('a set gate overrides its default', () => {
  const gates = FeatureGates.of({ LoggingAlphaOptions: true, ComponentFlagz: false });
  assert.ok(gates.enabled('LoggingAlphaOptions') && !gates.enabled('ComponentFlagz'));
});

test('a gate is turned on by the configuration, not by its default', () => {
  const isTurnedOn = (set: Record<string, boolean>) => FeatureGates.of(set).isTurnedOn('WatchListClient');
  assert.ok(isTurnedOn({ WatchListClient: true }) && isTurnedOn({ AllBeta: true }));
  assert.ok(!isTurnedOn({}) && !isTurnedOn({ WatchListClient: false, AllBeta: true }));
});

test('AllAlpha and AllBeta set the gates that are not set by name', () => {
  const gates = FeatureGates.of({
    AllAlpha: true,
    AllBeta: true,
    ClientsAllowCBOR: false,
    ComponentFlagz: false,
  });
  assert.ok(gates.enabled('KubeProxyNFTablesLocalhostNodePorts') && gates.enabled('AllAlpha'));
  assert.ok(!gates.enabled('ClientsAllowCBOR'));
  assert.ok(!gates.enabled('ComponentFlagz') && gates.enabled('GenericWorkload'));
  assert.ok(gates.enabled('KubeProxyIPVS') && gates.enabled('NFTablesProxyMode'));
});

test('GA and deprecated gates are reported when set, then all set gates', () => {
  const records: unknown[] = [];
  FeatureGates.of({ NFTablesProxyMode: true, KubeProxyIPVS: false, ContextualLogging: true }, (...record) =>
    records.push(record),
  );
  const warning = (word: string) =>
    `Warning: setting ${word} feature gate. It will be removed in a future release.`;
  assert.deepEqual(records, [
    [0, warning('deprecated'), { featureGate: 'KubeProxyIPVS', value: false }],
    [0, warning('GA'), { featureGate: 'NFTablesProxyMode', value: true }],
    [
      1,
      'Updated',
      { featureGates: { ContextualLogging: true, KubeProxyIPVS: false, NFTablesProxyMode: true } },
    ],
  ]);
});

test('a set gate is reported even if others are refused', () => {
  const levels: number[] = [];
  const refuse = () => FeatureGates.of({ ClusterTrustBundle: false }, (level) => levels.push(level));
  assert.throws(refuse, { message: /ClusterTrustBundleProjection is enabled/ });
  assert.deepEqual(levels, [0]);
});

const unmet = (gate: string, needs: string) =>
  `${gate} is enabled, but depends on features that are disabled: [${needs}]`;
const refused: [map: Record<string, boolean>, message: string][] = [
  [{ Nope: true }, 'unrecognized feature gate: Nope'],
  [{ nftablesproxymode: true }, 'unrecognized feature gate: nftablesproxymode'],
  [{ B: true, A: false }, 'unrecognized feature gate: A'],
  [{ TopologyAwareHints: true }, 'unrecognized feature gate: TopologyAwareHints'],
  [
    { GitRepoVolumeDriver: true, Nope: true },
    '[cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false, unrecognized feature gate: Nope]',
  ],
  [
    { NFTablesProxyMode: false },
    'cannot set feature gate NFTablesProxyMode to false, feature is locked to true',
  ],
  [
    { AtomicFIFO: false },
    `[${[
      'NodeControllerLeaseCircuitBreaker',
      ...['DaemonSet', 'HPA', 'Job', 'ReplicaSet', 'StatefulSet'].map(
        (kind) => `StaleControllerConsistency${kind}`,
      ),
    ]
      .map((gate) => unmet(gate, 'AtomicFIFO'))
      .join(', ')}]`,
  ],
  [
    { CompositePodGroup: true },
    unmet('CompositePodGroup', 'GenericWorkload TopologyAwareWorkloadScheduling'),
  ],
  [
    { AllBeta: false, StaleControllerConsistencyJob: true },
    unmet('StaleControllerConsistencyJob', 'AtomicFIFO'),
  ],
];
for (const [map, message] of refused) {
  test(`${JSON.stringify(map)} is refused`, () => {
    assert.throws(() => FeatureGates.of(map), { name: 'ConfigError', message });
  });
}

test('asking for an unknown gate throws', () => {
  assert.throws(() => FeatureGates.of({}).enabled('Nope'), /Nope does not exist/);
});
