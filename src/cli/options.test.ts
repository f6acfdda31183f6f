import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { applyPlatformDefaults, defaultConfig } from '../config/defaults.ts';
import type { ConfigDraft, LoggingConfig } from '../config/types.ts';
import { MINUTE, SECOND } from '../lib/duration.ts';
import { parseFlags } from './flag-set.ts';
import { allFlags, retiredNames } from './flags.ts';
import {
  applyHostnameOverride,
  configFromFlags,
  flagMessages,
  flagTexts,
  mergeLoggingFlags,
  type Options,
  optionsOf,
} from './options.ts';

function optionsFrom(...argv: string[]): Options {
  return optionsOf(parseFlags(allFlags, argv));
}

function configFrom(...argv: string[]): ConfigDraft {
  return configFromFlags(optionsFrom(...argv));
}

/** Paths at which two configurations differ, with the new value. */
function difference(before: unknown, after: unknown, path = ''): [string, unknown][] {
  const isSection = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isSection(before) || !isSection(after)) {
    return Object.is(before, after) || sameList(before, after) ? [] : [[path.slice(1), after]];
  }
  const old = new Map(Object.entries(before as object));
  const now = new Map(Object.entries(after as object));
  const keys = new Set([...old.keys(), ...now.keys()]);
  return [...keys].flatMap((key) => difference(old.get(key), now.get(key), `${path}.${key}`));
}

function sameList(a: unknown, b: unknown): boolean {
  return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => item === b[i]);
}

test('no flags give the default configuration', () => {
  assert.deepEqual(configFrom(), defaultConfig());
});

test('a flag given its own default changes nothing', () => {
  // Giving --cluster-cidr makes a list; giving a list flag makes an empty list of null, and "[]" is no network.
  const lists = [
    'cluster-cidr',
    'nodeport-addresses',
    'ipvs-exclude-cidrs',
    'inspection-from',
    'service-metrics',
  ];
  const telling = new Set([...lists, 'help', 'version']);
  for (const flag of allFlags) {
    if (telling.has(flag.name) || retiredNames.has(flag.name)) continue;
    const config = configFrom(`--${flag.name}=${flag.defaultText}`);
    assert.deepEqual(config, defaultConfig(), `--${flag.name}=${flag.defaultText}`);
  }
});

const fields: [argv: string, path: string, value: unknown][] = [
  ['--kubeconfig=/k', 'clientConnection.kubeconfig', '/k'],
  ['--kube-api-content-type=application/json', 'clientConnection.contentType', 'application/json'],
  ['--kube-api-qps=0.1', 'clientConnection.qps', 0.1],
  ['--kube-api-burst=3', 'clientConnection.burst', 3],
  ['--logging-format=json', 'logging.format', 'json'],
  ['--log-flush-frequency=1m', 'logging.flushFrequency', MINUTE],
  ['-v=4', 'logging.verbosity', 4],
  ['--log-text-split-stream', 'logging.options.text.splitStream', true],
  ['--log-json-split-stream', 'logging.options.json.splitStream', true],
  ['--log-text-info-buffer-size=2Ki', 'logging.options.text.infoBufferSize', '2Ki'],
  ['--log-json-info-buffer-size=512', 'logging.options.json.infoBufferSize', '512'],
  ['--hostname-override= Node-A ', 'hostnameOverride', 'node-a'],
  ['--bind-address=::', 'bindAddress', '::'],
  ['--healthz-bind-address=1.2.3.4:5', 'healthzBindAddress', '1.2.3.4:5'],
  ['--metrics-bind-address=[::1]:5', 'metricsBindAddress', '[::1]:5'],
  ['--bind-address-hard-fail', 'bindAddressHardFail', true],
  ['--profiling', 'enableProfiling', true],
  ['--show-hidden-metrics-for-version=1.36', 'showHiddenMetricsForVersion', '1.36'],
  ['--proxy-mode=userspace', 'mode', 'userspace'],
  ['--iptables-masquerade-bit=3', 'iptables.masqueradeBit', 3],
  ['--masquerade-all', 'linux.masqueradeAll', true],
  ['--iptables-localhost-nodeports=false', 'iptables.localhostNodePorts', false],
  ['--iptables-sync-period=36s', 'syncPeriod', 36n * SECOND],
  ['--iptables-min-sync-period=0', 'minSyncPeriod', 0n],
  ['--ipvs-scheduler=sh', 'ipvs.scheduler', 'sh'],
  ['--ipvs-exclude-cidrs=10.0.0.0/8', 'ipvs.excludeCIDRs', ['10.0.0.0/8']],
  ['--ipvs-exclude-cidrs=', 'ipvs.excludeCIDRs', []],
  ['--ipvs-strict-arp', 'ipvs.strictARP', true],
  ['--ipvs-tcp-timeout=1s', 'ipvs.tcpTimeout', SECOND],
  ['--ipvs-tcpfin-timeout=1s', 'ipvs.tcpFinTimeout', SECOND],
  ['--ipvs-udp-timeout=1s', 'ipvs.udpTimeout', SECOND],
  ['--detect-local-mode=NodeCIDR', 'detectLocalMode', 'NodeCIDR'],
  ['--pod-bridge-interface=br0', 'detectLocal.bridgeInterface', 'br0'],
  ['--pod-interface-name-prefix=veth', 'detectLocal.interfaceNamePrefix', 'veth'],
  [
    '--cluster-cidr=2002:0:0:1234::/64,10.0.0.0/14',
    'detectLocal.clusterCIDRs',
    ['2002:0:0:1234::/64', '10.0.0.0/14'],
  ],
  ['--cluster-cidr=', 'detectLocal.clusterCIDRs', ['']],
  ['--nodeport-addresses=primary,10.0.0.0/8', 'nodePortAddresses', ['primary', '10.0.0.0/8']],
  ['--oom-score-adj=-1', 'linux.oomScoreAdj', -1],
  ['--conntrack-max-per-core=0', 'linux.conntrack.maxPerCore', 0],
  ['--conntrack-min=1', 'linux.conntrack.min', 1],
  ['--conntrack-tcp-timeout-established=0', 'linux.conntrack.tcpEstablishedTimeout', 0n],
  ['--conntrack-tcp-timeout-close-wait=1s', 'linux.conntrack.tcpCloseWaitTimeout', SECOND],
  ['--conntrack-tcp-be-liberal', 'linux.conntrack.tcpBeLiberal', true],
  ['--conntrack-udp-timeout=1s', 'linux.conntrack.udpTimeout', SECOND],
  ['--conntrack-udp-timeout-stream=1s', 'linux.conntrack.udpStreamTimeout', SECOND],
  ['--config-sync-period=1m', 'configSyncPeriod', MINUTE],
];

for (const [argument, path, value] of fields) {
  test(`${argument} sets ${path} and nothing else`, () => {
    assert.deepEqual(difference(defaultConfig(), configFrom(argument)), [[path, value]]);
  });
}

test('feature gates and vmodule rules are parsed into records', () => {
  assert.deepEqual(configFrom('--feature-gates=A=true', '--feature-gates=B=false').featureGates, {
    A: true,
    B: false,
  });
  const vmodule = [{ filePattern: 'goo', verbosity: 8 }];
  assert.deepEqual(configFrom('--vmodule=goo=8').logging.vmodule, vmodule);
});

test('flags without a configuration field have their own values', () => {
  const options = optionsFrom(
    '--config=/c',
    '--write-config-to=/w',
    '--cleanup',
    '--init-only',
    '--master=http://m',
    '--manifests=/objects',
    '--version=v1.37.0-mine',
  );
  const { configPath, writeConfigTo, cleanup, initOnly, master, manifests, version } = options;
  assert.deepEqual(
    { configPath, writeConfigTo, cleanup, initOnly, master, manifests },
    {
      configPath: '/c',
      writeConfigTo: '/w',
      cleanup: true,
      initOnly: true,
      master: 'http://m',
      manifests: '/objects',
    },
  );
  assert.equal(version.gitVersion, 'v1.37.0-mine');
  assert.deepEqual(options.draft, defaultConfig());
});

const addresses: [argv: string[], healthz: string, metrics: string][] = [
  [['--healthz-port=12345', '--metrics-port=12346'], '0.0.0.0:10256', '127.0.0.1:10249'],
  [['--healthz-port=0'], '', '127.0.0.1:10249'],
  [['--metrics-port=0'], '0.0.0.0:10256', ''],
  [['--healthz-bind-address=fd00::5', '--healthz-port=12345'], '[fd00::5]:12345', '127.0.0.1:10249'],
  [['--healthz-bind-address=1.2.3.4', '--metrics-bind-address=::'], '1.2.3.4:10256', '[::]:10249'],
  [['--healthz-bind-address=1.2.3.4:80', '--healthz-port=81'], '1.2.3.4:80', '127.0.0.1:10249'],
  [['--healthz-bind-address=', '--metrics-bind-address='], '0.0.0.0:10256', '127.0.0.1:10249'],
  [['--bind-address=::'], '0.0.0.0:10256', '127.0.0.1:10249'],
  [['--write-config-to=/w', '--healthz-bind-address=1.2.3.4'], '1.2.3.4', '127.0.0.1:10249'],
  [['--write-config-to=/w', '--metrics-port=0'], '0.0.0.0:10256', '127.0.0.1:10249'],
];

for (const [argv, healthz, metrics] of addresses) {
  test(`addresses of ${argv.join(' ')}`, () => {
    const config = configFrom(...argv);
    assert.deepEqual([config.healthzBindAddress, config.metricsBindAddress], [healthz, metrics]);
  });
}

const periods: [argv: string[], sync: bigint, minSync: bigint][] = [
  [['--proxy-mode=ipvs'], 30n * SECOND, SECOND],
  [['--iptables-sync-period=36s', '--ipvs-sync-period=16s', '--proxy-mode=ipvs'], 16n * SECOND, SECOND],
  [['--iptables-sync-period=36s', '--ipvs-sync-period=16s'], 36n * SECOND, SECOND],
  [['--proxy-mode=nftables', '--iptables-min-sync-period=5s'], 30n * SECOND, 5n * SECOND],
  [['--proxy-mode=ipvs', '--ipvs-min-sync-period=0s'], 30n * SECOND, 0n],
];

for (const [argv, sync, minSync] of periods) {
  test(`sync periods of ${argv.join(' ')}`, () => {
    const config = configFrom(...argv);
    assert.deepEqual([config.syncPeriod, config.minSyncPeriod], [sync, minSync]);
  });
}

test('a blank --hostname-override is refused, an empty one ignored', () => {
  assert.throws(() => configFrom('--hostname-override=  '), {
    message: 'empty hostname-override is invalid',
  });
  assert.equal(configFrom('--hostname-override=').hostnameOverride, '');
});

test('--hostname-override overrides the file', () => {
  const file = { ...defaultConfig(), hostnameOverride: 'from-file' };
  applyHostnameOverride(file, optionsFrom());
  assert.equal(file.hostnameOverride, 'from-file');
  applyHostnameOverride(file, optionsFrom('--hostname-override=Flag'));
  assert.equal(file.hostnameOverride, 'flag');
});

const fileLogging: LoggingConfig = {
  format: 'json',
  flushFrequency: MINUTE,
  verbosity: 3,
  vmodule: [{ filePattern: 'foo', verbosity: 6 }],
  options: {
    text: { splitStream: true, infoBufferSize: '1k' },
    json: { splitStream: true, infoBufferSize: '2k' },
  },
};

test('without logging flags, the logging section of the file is used except for split streams', () => {
  assert.deepEqual(mergeLoggingFlags(fileLogging, optionsFrom('--config=/c')), {
    ...fileLogging,
    options: {
      text: { splitStream: false, infoBufferSize: '1k' },
      json: { splitStream: false, infoBufferSize: '2k' },
    },
  });
});

test('logging flags override the file; vmodule rules of the flag come first', () => {
  const merged = mergeLoggingFlags(
    fileLogging,
    optionsFrom('--vmodule', 'goo=8', '-v=7', '--logging-format=text'),
  );
  assert.equal(merged.verbosity, 7);
  assert.equal(merged.format, 'text');
  assert.equal(merged.flushFrequency, MINUTE);
  assert.deepEqual(merged.vmodule, [
    { filePattern: 'goo', verbosity: 8 },
    { filePattern: 'foo', verbosity: 6 },
  ]);
});

test('a logging flag with its default value overrides the file', () => {
  const options = optionsFrom(
    '-v=0',
    '--log-flush-frequency=5s',
    '--log-json-info-buffer-size=0',
    '--log-json-split-stream',
  );
  const merged = mergeLoggingFlags(fileLogging, options);
  assert.equal(merged.verbosity, 0);
  assert.equal(merged.flushFrequency, 5n * SECOND);
  assert.deepEqual(merged.options, {
    text: { splitStream: false, infoBufferSize: '1k' },
    json: { splitStream: true, infoBufferSize: '0' },
  });
});

test('flags of service metrics refuse other words and numbers', () => {
  assert.deepEqual(optionsFrom('--service-metrics=connections,bytes').serviceMetrics, [
    'connections',
    'bytes',
  ]);
  assert.throws(() => optionsFrom('--service-metrics=packets'), /"packets" is neither connections nor bytes/);
  assert.throws(() => optionsFrom('--service-metrics-max=0'), /0 is not above 0/);
});

test('--reset-departed refuses other words', () => {
  assert.equal(optionsFrom('--reset-departed=tcp').resetDeparted, 'tcp');
  assert.throws(() => optionsFrom('--reset-departed=udp'), /is none of off, tcp/);
});

test('--nftables-fast-path refuses other words, and numbers of packets below 1', () => {
  const { fastPath, fastPathAfter } = optionsFrom('--nftables-fast-path=services');
  assert.deepEqual([fastPath, fastPathAfter], ['services', 20]);
  assert.throws(() => optionsFrom('--nftables-fast-path=yes'), /is none of off, services, all/);
  assert.throws(() => optionsFrom('--nftables-fast-path-after=0'), /0 is not above 0/);
});

test('flag texts equal those on the recorded /flagz page', () => {
  const page = readFileSync(new URL('../../test/vectors/pages/iptables.json', import.meta.url), 'utf8');
  const body: string = JSON.parse(page).pages['10249/flagz'].body;
  const expected = body.split('\n').filter((line) => /^[a-z-]+=/.test(line));
  const extras = [
    'manifests',
    'dry-run',
    'output',
    'inspection-from',
    'service-metrics',
    'service-metrics-max',
    'reset-departed',
    'nftables-fast-path',
    'nftables-fast-path-after',
  ];
  const listed = [...optionsFrom('--config=DIR/config.yaml').flags].filter(
    ([name]) => !extras.includes(name),
  );
  assert.deepEqual(
    listed.map(([name, text]) => `${name}=${text}`),
    expected,
  );
});

test('without a file, flag texts show the completed configuration', () => {
  const completed = (...argv: string[]) => {
    const options = optionsFrom(...argv);
    const { config } = applyPlatformDefaults(configFromFlags(options));
    return Object.fromEntries(flagTexts(options, config));
  };
  const flags = completed('--proxy-mode=nftables', '--healthz-port=0', '--metrics-bind-address=::1');
  assert.equal(flags['proxy-mode'], 'nftables');
  assert.equal(flags['detect-local-mode'], 'ClusterCIDR');
  assert.equal(flags['nodeport-addresses'], '[primary]');
  assert.equal(flags['healthz-bind-address'], '');
  assert.equal(flags['metrics-bind-address'], '[::1]:10249');
  const beside = completed('--config=x', '--nodeport-addresses=a,b');
  assert.equal(beside['detect-local-mode'], '');
  assert.equal(beside['nodeport-addresses'], '[a,b]');
});

test('flags are logged with quoted values, retired ones not at all', () => {
  const messages = flagMessages(optionsFrom('--config=a"b', '--logtostderr'), defaultConfig());
  assert.ok(messages.includes('FLAG: --config="a\\"b"'));
  assert.ok(messages.includes('FLAG: --config-sync-period="15m0s"'));
  assert.ok(!messages.some((message) => message.includes('logtostderr')));
});
