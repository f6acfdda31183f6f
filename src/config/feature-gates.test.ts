import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { FeatureGates, type Gate, knownGates } from './feature-gates.ts';

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

test('no gate is listed twice, and only finished ones are locked', () => {
  const names = knownGates().map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  assert.deepEqual(names, names.toSorted());
  assert.ok(
    knownGates().every(
      ({ stage, locked, name }) => /^[A-Z][A-Za-z0-9]+$/.test(name) && (!locked || stage === 'GA'),
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
];
for (const [name, stage, value, locked] of consulted) {
  test(`${name} is ${stage} and ${value ? 'on' : 'off'}`, () => {
    assert.deepEqual(
      knownGates().find((gate) => gate.name === name),
      { name, stage, default: value, locked },
    );
    assert.equal(FeatureGates.from({}).gates.enabled(name), value);
  });
}

test('a gate that is set counts instead of its default', () => {
  const { gates, warnings } = FeatureGates.from({ LoggingAlphaOptions: true, ComponentFlagz: false });
  assert.ok(gates.enabled('LoggingAlphaOptions') && !gates.enabled('ComponentFlagz'));
  assert.deepEqual(warnings, []);
});

test('AllAlpha and AllBeta set what is not set by name', () => {
  const { gates } = FeatureGates.from({
    AllAlpha: true,
    AllBeta: false,
    ClientsAllowCBOR: false,
    WatchListClient: true,
  });
  assert.ok(gates.enabled('KubeProxyNFTablesLocalhostNodePorts') && gates.enabled('AllAlpha'));
  assert.ok(!gates.enabled('ClientsAllowCBOR'));
  assert.ok(!gates.enabled('ComponentFlagz') && gates.enabled('WatchListClient'));
  assert.ok(gates.enabled('KubeProxyIPVS') && gates.enabled('NFTablesProxyMode'));
});

test('gates on their way out are warned about', () => {
  assert.deepEqual(FeatureGates.from({ NFTablesProxyMode: true, KubeProxyIPVS: false }).warnings, [
    'Setting deprecated feature gate KubeProxyIPVS=false. It will be removed in a future release.',
    'Setting GA feature gate NFTablesProxyMode=true. It will be removed in a future release.',
  ]);
});

const needsFifo = (gate: string) =>
  `${gate} is enabled, but depends on features that are disabled: [AtomicFIFO]`;
const refused: [map: Record<string, boolean>, message: string][] = [
  [{ Nope: true }, 'unrecognized feature gate: Nope'],
  [{ nftablesproxymode: true }, 'unrecognized feature gate: nftablesproxymode'],
  [{ B: true, A: false }, '[unrecognized feature gate: A, unrecognized feature gate: B]'],
  [
    { NFTablesProxyMode: false },
    'cannot set feature gate NFTablesProxyMode to false, feature is locked to true',
  ],
  [
    { AtomicFIFO: false },
    `[${['DaemonSet', 'HPA', 'Job', 'ReplicaSet', 'StatefulSet'].map((kind) => needsFifo(`StaleControllerConsistency${kind}`)).join(', ')}]`,
  ],
  [{ AllBeta: false, StaleControllerConsistencyJob: true }, needsFifo('StaleControllerConsistencyJob')],
];
for (const [map, message] of refused) {
  test(`${JSON.stringify(map)} is refused`, () => {
    assert.throws(() => FeatureGates.from(map), { name: 'ConfigError', message });
  });
}

test('asking for a gate that does not exist is a mistake', () => {
  assert.throws(() => FeatureGates.from({}).gates.enabled('Nope'), /Nope does not exist/);
});
