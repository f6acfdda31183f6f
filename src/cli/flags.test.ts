import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseFlags } from './flag-set.ts';
import { allFlags, flagGroups, retiredNames } from './flags.ts';
import { UsageError } from './usage-error.ts';

interface RecordedFlag {
  readonly name: string;
  readonly short?: string;
  readonly type: string;
  /** Absent when it is the zero of the type. */
  readonly default?: string;
}

const vectors = new URL('../../test/vectors/', import.meta.url);
const recorded: { flags: RecordedFlag[] } = JSON.parse(
  readFileSync(new URL('cli/flags.json', vectors), 'utf8'),
);
const byName = new Map(allFlags.map((flag) => [flag.name, flag]));

/** Flags of our own, which upstream does not know. */
const extras = new Map([
  ['manifests', 'runs without an API server, from files'],
  ['dry-run', 'prints what a start would change'],
  ['output', 'makes that JSON'],
  ['inspection-from', 'opens the inspection pages to others than loopback'],
  ['service-metrics', 'counts the traffic of Services for Prometheus'],
  ['service-metrics-max', 'limits the number of these series'],
  ['reset-departed', 'ends connections to endpoints that are gone'],
  ['nftables-fast-path', 'forwards packets of open connections without rules'],
  ['nftables-fast-path-after', 'says from which packet on'],
]);

const zeros: Record<string, string> = {
  bool: 'false',
  duration: '0s',
  strings: '[]',
  quantity: '0',
  Level: '0',
  'version[=true]': 'false',
};

for (const { name, short, type, default: value } of recorded.flags) {
  test(`--${name} has upstream's type and default`, () => {
    const flag = byName.get(name);
    assert.ok(flag, `--${name} is missing`);
    const optional =
      flag.typeName === 'bool' || flag.noOptDefault === undefined ? '' : `[=${flag.noOptDefault}]`;
    assert.equal(flag.typeName + optional, type);
    assert.equal(flag.shorthand, short);
    assert.equal(flag.defaultText, value ?? zeros[type] ?? '');
    assert.equal(flag.deprecated, undefined);
    assert.notEqual(flag.help, '');
  });
}

test('flags that upstream does not have are deprecated, retired or our own', () => {
  const known = new Set(recorded.flags.map((flag) => flag.name));
  const beyond = allFlags
    .map((flag) => flag.name)
    .filter((name) => !known.has(name) && !retiredNames.has(name));
  assert.deepEqual(beyond.sort(), ['healthz-port', 'metrics-port', ...extras.keys()].sort());
  for (const name of ['healthz-port', 'metrics-port']) assert.ok(byName.get(name)?.deprecated);
});

test('names and shorthands are unique', () => {
  assert.equal(byName.size, allFlags.length);
  const shorthands = allFlags.flatMap((flag) => flag.shorthand ?? []);
  assert.equal(new Set(shorthands).size, shorthands.length);
  assert.equal(flagGroups.flatMap((group) => group.flags).length + retiredNames.size, allFlags.length);
});

test('removed flags are accepted with one warning each', () => {
  const old = [
    '--udp-timeout=250ms',
    '--proxy-port-range=0-0',
    '--boot-id-file=/x',
    '--machine-id-file=/x,/y',
    '--log-dir=/var/log',
    '--log-file=x',
    '--log-file-max-size=1800',
    '--log-backtrace-at=:0',
    '--stderrthreshold=2',
    '--logtostderr',
    '--alsologtostderr=true',
    '--add_dir_header',
    '--one-output=false',
    '--skip-headers',
    '--skip-log-headers',
  ];
  const { warnings, positionals } = parseFlags(allFlags, old);
  assert.deepEqual(positionals, []);
  assert.equal(warnings.length, old.length);
  for (const line of warnings) assert.match(line, /^Flag --[a-z-]+ has been deprecated, .+ ignored\.$/);
  assert.equal(retiredNames.size, old.length);
});

test('flags of Windows are unknown on Linux', () => {
  for (const name of ['enable-dsr', 'network-name', 'source-vip', 'windows-service']) {
    assert.throws(() => parseFlags(allFlags, [`--${name}=x`]), UsageError);
  }
});
