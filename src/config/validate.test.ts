import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SECOND } from '../lib/duration.ts';
import { applyPlatformDefaults, defaultConfig } from './defaults.ts';
import { joinMessages } from './errors.ts';
import { FeatureGates } from './feature-gates.ts';
import type { ConfigDraft, LoggingConfig } from './types.ts';
import { validateConfig } from './validate.ts';
import { validateLogging } from './validate-logging.ts';

const gates = FeatureGates.of({});
/** Fields to change, at any depth. */
type Change<T = ConfigDraft> = {
  [K in keyof T]?: T[K] extends unknown[] | null ? T[K] : Change<T[K]> | T[K];
};

function changed<T>(value: T, change: Change<T> | T): T {
  const isObject = typeof change === 'object' && change !== null && !Array.isArray(change);
  if (!isObject) return change as T;
  const entries = Object.entries(change).map(([key, inner]) => [key, changed(value[key as keyof T], inner)]);
  return { ...value, ...Object.fromEntries(entries) };
}

function errorsOf(change: Change, set = gates): string[] {
  return validateConfig(changed(applyPlatformDefaults(defaultConfig()).config, change), set);
}

test('the defaults are valid', () => {
  assert.deepEqual(errorsOf({}), []);
});

const valid: [what: string, change: Change][] = [
  ['a port with a plus sign', { healthzBindAddress: '1.2.3.4:+80', metricsBindAddress: '[::1]:+080' }],
  ['each mode, userspace included', { mode: 'userspace' }],
  ['a blank mode', { mode: '' }],
  ['ipvs with its gate on', { mode: 'ipvs' }],
  ['masquerade bit 0', { iptables: { masqueradeBit: 0 } }],
  ['masquerade bit 31', { iptables: { masqueradeBit: 31 } }],
  ['an nftables bit out of range in another mode', { nftables: { masqueradeBit: 99 } }],
  ['negative ipvs timeouts in another mode', { ipvs: { tcpTimeout: -SECOND } }],
  ['bad ipvs.excludeCIDRs in another mode', { ipvs: { excludeCIDRs: ['x'] } }],
  ['nulls', { linux: { oomScoreAdj: null, conntrack: { min: null } } }],
  ['the limits of oomScoreAdj', { linux: { oomScoreAdj: -1000 } }],
  ['no health server', { healthzBindAddress: '' }],
  ['IPv6 addresses', { bindAddress: 'fd00::1', metricsBindAddress: '[::1]:65535' }],
  ['leading zeros in an address', { bindAddress: '010.0.0.1' }],
  ['keywords and CIDRs together', { nodePortAddresses: ['primary', '10.0.0.0/8', 'localhost', 'all'] }],
  ['the same CIDR twice', { nodePortAddresses: ['10.0.0.0/8', '10.0.0.0/8'] }],
  ['hidden metrics of the previous minor', { showHiddenMetricsForVersion: '1.36' }],
  ['a dual-stack pair', { detectLocal: { clusterCIDRs: ['fd00::/64', '10.0.0.0/8'] } }],
  [
    'bad cluster CIDRs in another detection mode',
    { detectLocalMode: 'NodeCIDR', detectLocal: { clusterCIDRs: ['x'] } },
  ],
  ['any scheduler', { ipvs: { scheduler: 'fastest' } }],
];
for (const [what, change] of valid) {
  test(`valid: ${what}`, () => assert.deepEqual(errorsOf(change), []));
}

const NOT_NEGATIVE = 'must be greater than or equal to 0';
const BIT_RANGE = 'must be within the range [0, 31]';
const CONNTRACK = 'KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration';
const PAIR =
  'must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]';
const BLOCK = 'must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)';
const NODE_PORT = "must be a valid CIDR or one of the keywords 'primary', 'localhost', 'all'";
const MODES =
  'must be iptables, ipvs, nftables, userspace or blank (blank means the best-available proxy [currently iptables])';

/** Changes and the messages they cause, each without the common prefix `KubeProxyConfiguration.`. */
const invalid: [change: Change, ...messages: string[]][] = [
  [{ featureGates: { X: true } }, 'featureGates: Invalid value: {"X":true}: unrecognized feature gate: X'],
  [
    { iptables: { masqueradeBit: 32 } },
    `KubeProxyIPTablesConfiguration.MasqueradeBit: Invalid value: 32: ${BIT_RANGE}`,
  ],
  [
    {
      mode: 'ipvs',
      ipvs: {
        tcpTimeout: -1n,
        tcpFinTimeout: -SECOND,
        udpTimeout: -2n,
        excludeCIDRs: ['10.0.0.0/8', 'foo', '1.2.3.4'],
      },
    },
    `KubeProxyIPVSConfiguration.TCPTimeout: Invalid value: "-1ns": ${NOT_NEGATIVE}`,
    `KubeProxyIPVSConfiguration.TCPFinTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
    `KubeProxyIPVSConfiguration.UDPTimeout: Invalid value: "-2ns": ${NOT_NEGATIVE}`,
    'KubeProxyIPVSConfiguration.ExcludeCidrs[1]: Invalid value: "foo": must be a valid CIDR',
    'KubeProxyIPVSConfiguration.ExcludeCidrs[2]: Invalid value: "1.2.3.4": must be a valid CIDR',
  ],
  [
    { mode: 'nftables', nftables: { masqueradeBit: -1 } },
    `KubeProxyNFTablesConfiguration.MasqueradeBit: Invalid value: -1: ${BIT_RANGE}`,
  ],
  [
    {
      linux: {
        oomScoreAdj: 1001,
        conntrack: {
          maxPerCore: -1,
          min: -2,
          tcpEstablishedTimeout: -SECOND,
          tcpCloseWaitTimeout: -SECOND,
          udpTimeout: -SECOND,
          udpStreamTimeout: -SECOND,
        },
      },
    },
    `${CONNTRACK}.MaxPerCore: Invalid value: -1: ${NOT_NEGATIVE}`,
    `${CONNTRACK}.Min: Invalid value: -2: ${NOT_NEGATIVE}`,
    `${CONNTRACK}.TCPEstablishedTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
    `${CONNTRACK}.TCPCloseWaitTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
    `${CONNTRACK}.UDPTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
    `${CONNTRACK}.UDPStreamTimeout: Invalid value: "-1s": ${NOT_NEGATIVE}`,
    'KubeProxyLinuxConfiguration.OOMScoreAdj: Invalid value: 1001: must be within the range [-1000, 1000]',
  ],
  [{ mode: 'Userspace' }, `Mode.ProxyMode: Invalid value: "Userspace": ${MODES}`],
  [{ clientConnection: { burst: -1 } }, `ClientConnection.Burst: Invalid value: -1: ${NOT_NEGATIVE}`],
  [
    { configSyncPeriod: 0n, syncPeriod: 0n, minSyncPeriod: -SECOND },
    'ConfigSyncPeriod: Invalid value: "0s": must be greater than 0',
    'SyncPeriod: Invalid value: "0s": must be greater than 0',
    `MinSyncPeriod: Invalid value: "-1s": ${NOT_NEGATIVE}`,
  ],
  [
    { syncPeriod: SECOND, minSyncPeriod: 2n * SECOND },
    'SyncPeriod: Invalid value: "2s": must be greater than or equal to KubeProxyConfiguration.MinSyncPeriod',
  ],
  [
    { bindAddress: '[::1]' },
    'BindAddress: Invalid value: "[::1]": not a valid textual representation of an IP address',
  ],
  [{ healthzBindAddress: '1.2.3.4' }, 'HealthzBindAddress: Invalid value: "1.2.3.4": must be IP:port'],
  [{ healthzBindAddress: '::1:80' }, 'HealthzBindAddress: Invalid value: "::1:80": must be IP:port'],
  [
    { healthzBindAddress: 'foo:0' },
    'HealthzBindAddress: Invalid value: "foo": must be a valid IP',
    'HealthzBindAddress: Invalid value: "0": must be a valid port',
  ],
  [
    { healthzBindAddress: '1.2.3.4:-80', metricsBindAddress: '1.2.3.4:++80' },
    'HealthzBindAddress: Invalid value: "-80": must be a valid port',
    'MetricsBindAddress: Invalid value: "++80": must be a valid port',
  ],
  [{ metricsBindAddress: '' }, 'MetricsBindAddress: Invalid value: "": must be IP:port'],
  [{ metricsBindAddress: '[::]:65536' }, 'MetricsBindAddress: Invalid value: "65536": must be a valid port'],
  [
    { nodePortAddresses: ['localhost', 'localhost', '10.0.0.1', 'Primary'] },
    'NodePortAddresses[1]: Duplicate value: "localhost"',
    `NodePortAddresses[2]: Invalid value: "10.0.0.1": ${NODE_PORT}`,
    `NodePortAddresses[3]: Invalid value: "Primary": ${NODE_PORT}`,
  ],
  [
    { showHiddenMetricsForVersion: '1.37' },
    'ShowHiddenMetricsForVersion: Invalid value: "1.37": invalid showHiddenMetricsForVersion: ' +
      'showHiddenMetricsForVersion: Invalid value: "1.37": must be omitted or have the value \'1.36\'; ' +
      'only the previous minor version is allowed',
  ],
  [
    { detectLocalMode: 'Magic' },
    'DetectLocalMode: Unsupported value: "Magic": supported values: ' +
      '"ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix", ""',
  ],
  [
    { detectLocalMode: 'BridgeInterface' },
    'DetectLocalConfiguration.InterfaceName: Invalid value: "": must not be empty',
  ],
  [
    { detectLocalMode: 'InterfaceNamePrefix' },
    'DetectLocalConfiguration.InterfacePrefix: Invalid value: "": must not be empty',
  ],
  [
    { detectLocal: { clusterCIDRs: ['10.0.0.0/8', '11.0.0.0/8'] } },
    `DetectLocalConfiguration.ClusterCIDRs: Invalid value: ["10.0.0.0/8","11.0.0.0/8"]: ${PAIR}`,
  ],
  [
    { detectLocal: { clusterCIDRs: ['<a>', 'b', 'c'] } },
    `DetectLocalConfiguration.ClusterCIDRs: Invalid value: ["\\u003ca\\u003e","b","c"]: ${PAIR}`,
  ],
  [
    { detectLocal: { clusterCIDRs: ['10.0.0.0/8', ' fd00::/64'] } },
    `DetectLocalConfiguration.ClusterCIDRs[1]: Invalid value: " fd00::/64": ${BLOCK}`,
  ],
  [
    { detectLocal: { clusterCIDRs: [''] } },
    `DetectLocalConfiguration.ClusterCIDRs[0]: Invalid value: "": ${BLOCK}`,
  ],
  [{ logging: { format: 'xml' } }, 'logging.format: Invalid value: "xml": Unsupported log format'],
];
for (const [change, ...messages] of invalid) {
  test(`invalid: ${messages[0]}`, () => {
    const expected = messages.map((message) => `KubeProxyConfiguration.${message}`);
    assert.deepEqual(errorsOf(change), expected);
  });
}

test('without its gate, ipvs is neither valid nor listed', () => {
  const off = FeatureGates.of({ KubeProxyIPVS: false });
  assert.deepEqual(errorsOf({ mode: 'ipvs' }, off), [
    'KubeProxyConfiguration.Mode.ProxyMode: Invalid value: "ipvs": ' +
      'must be iptables, nftables, userspace or blank (blank means the best-available proxy [currently iptables])',
  ]);
});

test('messages are joined without repeats', () => {
  assert.equal(joinMessages(['a']), 'a');
  assert.equal(joinMessages(['a', 'a']), 'a');
  assert.equal(joinMessages(['a', 'b', 'a']), '[a, b]');
});

const MAX_LEVEL = 2 ** 31 - 1;
const logging: [fields: Partial<LoggingConfig>, ...messages: string[]][] = [
  [{ verbosity: MAX_LEVEL, vmodule: [{ filePattern: 'a', verbosity: MAX_LEVEL }] }],
  [{ flushFrequency: -SECOND }, 'flushFrequency: Invalid value: "-1s": Must be greater than zero'],
  [{ flushFrequency: -1 }, 'flushFrequency: Invalid value: -1: Must be greater than zero'],
  [{ format: '' }, 'format: Invalid value: "": Unsupported log format'],
  [{ verbosity: MAX_LEVEL + 1 }, 'verbosity: Invalid value: 2147483648: Must be <= 2147483647'],
  [
    { format: 'json', vmodule: [{ filePattern: 'a', verbosity: 1 }] },
    'vmodule: Forbidden: Only supported for text log format',
  ],
  [
    {
      vmodule: [
        { filePattern: '', verbosity: 0 },
        { filePattern: 'a=b', verbosity: MAX_LEVEL + 1 },
      ],
    },
    'vmodule[0]: Required value: File pattern must not be empty',
    'vmodule[1]: Invalid value: "a=b": File pattern must not contain equal sign or comma',
    'vmodule[1]: Invalid value: 2147483648: Must be <= 2147483647',
  ],
  [
    {
      options: {
        text: { splitStream: true, infoBufferSize: '0' },
        json: { splitStream: false, infoBufferSize: '1Ki' },
      },
    },
    'options.text.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled',
    'options.json.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled',
  ],
];
for (const [fields, ...messages] of logging) {
  test(`logging: ${messages[0] ?? 'valid'}`, () => {
    const errors = validateLogging({ ...defaultConfig().logging, ...fields }, gates, 'logging');
    assert.deepEqual(
      errors,
      messages.map((message) => `logging.${message}`),
    );
  });
}

test('logging options follow their gates', () => {
  const json = { ...defaultConfig().logging, format: 'json' };
  const noBeta = FeatureGates.of({ LoggingBetaOptions: false });
  assert.deepEqual(validateLogging(json, gates, 'logging'), []);
  assert.match(
    validateLogging(json, noBeta, 'logging')[0] ?? '',
    /^logging\.format: Forbidden: .*LoggingBetaOptions/,
  );
  const split = { splitStream: true, infoBufferSize: '1Ki' };
  const alpha = FeatureGates.of({ LoggingAlphaOptions: true });
  assert.deepEqual(validateLogging({ ...json, options: { text: split, json: split } }, alpha, 'logging'), []);
});

test('validation reports the gates again', () => {
  const config = { ...defaultConfig(), featureGates: { KubeProxyIPVS: true } };
  const levels: number[] = [];
  assert.deepEqual(
    validateConfig(config, gates, (level) => levels.push(level)),
    [],
  );
  assert.deepEqual(levels, [0, 1]);
});
