import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { configFiles } from '../../test/config/arbitrary-files.ts';
import { HOUR, MILLISECOND } from '../lib/duration.ts';
import { decodeConfig, MAX_CONFIG_SIZE, strictDecodingError } from './decode.ts';
import { defaultConfig } from './defaults.ts';
import { ConfigError } from './errors.ts';
import { API_VERSION, KIND } from './v1alpha1.ts';

const yamlHead = `apiVersion: ${API_VERSION}\nkind: ${KIND}\n`;
const jsonHead = `"apiVersion":"${API_VERSION}","kind":"${KIND}"`;

test('an empty file is all defaults, in both notations', async () => {
  const texts = [yamlHead, `{${jsonHead}}`, `\n\t {${jsonHead}}`, `# comment\n${yamlHead}`];
  for (const text of [
    ...texts,
    `\ufeff${yamlHead}`,
    `\ufeff{${jsonHead}}`,
    yamlHead.replaceAll('\n', '\r'),
  ]) {
    assert.deepEqual(await decodeConfig(text), { config: defaultConfig(), strictErrors: [] });
  }
});

test('values of every type are decoded', async () => {
  const { config, strictErrors } = await decodeConfig(`${yamlHead}
featureGates: {AllAlpha: yes}
clientConnection: {qps: 0.1, burst: 7}
logging:
  flushFrequency: 3000000000
  vmodule: [{filePattern: a*, verbosity: 3}]
  options: {text: {infoBufferSize: 1024}, json: {infoBufferSize: 1.5Ki}}
mode: nftables
nftables: {syncPeriod: 1h, minSyncPeriod: 250ms, masqueradeAll: true, masqueradeBit: 0}
iptables: {syncPeriod: 9s, masqueradeAll: false}
clusterCIDR: 10.0.0.0/8, fd00::/64
nodePortAddresses: [primary, 10.0.0.0/8]
conntrack: {maxPerCore: 0, min: null, tcpEstablishedTimeout: 0s}
oomScoreAdj: 0x10
`);
  assert.deepEqual(strictErrors, []);
  assert.deepEqual(config.featureGates, { AllAlpha: true });
  assert.equal(config.clientConnection.qps, Math.fround(0.1));
  assert.equal(config.clientConnection.burst, 7);
  assert.equal(config.logging.flushFrequency, 3_000_000_000, 'a number stays one');
  assert.deepEqual(config.logging.vmodule, [{ filePattern: 'a*', verbosity: 3 }]);
  assert.equal(config.logging.options.text.infoBufferSize, '1024');
  assert.equal(config.logging.options.json.infoBufferSize, '1536');
  assert.equal(config.syncPeriod, HOUR);
  assert.equal(config.minSyncPeriod, 250n * MILLISECOND);
  assert.equal(config.linux.masqueradeAll, true);
  assert.equal(config.nftables.masqueradeBit, 0);
  assert.deepEqual(config.detectLocal.clusterCIDRs, ['10.0.0.0/8', ' fd00::/64']);
  assert.deepEqual(config.nodePortAddresses, ['primary', '10.0.0.0/8']);
  assert.equal(config.linux.conntrack.maxPerCore, 0);
  assert.equal(config.linux.conntrack.min, 131072);
  assert.equal(config.linux.conntrack.tcpEstablishedTimeout, 0n);
  assert.equal(config.linux.oomScoreAdj, 16);
});

test('null leaves a field unset where the type allows it', async () => {
  const nulls = '"mode":null,"iptables":null,"nodePortAddresses":null,"featureGates":null,"oomScoreAdj":null';
  const more =
    '"enableProfiling":null,"logging":{"flushFrequency":null},"conntrack":{"tcpCloseWaitTimeout":null}';
  assert.deepEqual((await decodeConfig(`{${jsonHead},${nulls},${more}}`)).config, defaultConfig());
});

test('kind and apiVersion are found in any case, but are then unknown fields', async () => {
  const { config, strictErrors } = await decodeConfig(`{"APIVersion":"${API_VERSION}","Kind":"${KIND}"}`);
  assert.deepEqual(config, defaultConfig());
  assert.deepEqual(strictErrors, ['unknown field "APIVersion"', 'unknown field "Kind"']);
});

const strict: [body: string, errors: string][] = [
  ['"nosuch":1', 'unknown field "nosuch"'],
  ['"Mode":"ipvs"', 'unknown field "Mode"'],
  ['"udpIdleTimeout":"250ms"', 'unknown field "udpIdleTimeout"'],
  ['"linux":{},"syncPeriod":"5s"', 'unknown field "linux", unknown field "syncPeriod"'],
  ['"iptables":{"nosuch":1}', 'unknown field "iptables.nosuch"'],
  ['"ipvs":{"excludeCIDRs":null,"x":[]}', 'unknown field "ipvs.x"'],
  ['"mode":"ipvs","mode":""', 'duplicate field "mode"'],
  ['"iptables":{"syncPeriod":"1s","syncPeriod":"30s"}', 'duplicate field "iptables.syncPeriod"'],
  ['"x":{"y":1,"y":2}', 'unknown field "x"'],
  ['"__proto__":1,"constructor":1', 'unknown field "__proto__", unknown field "constructor"'],
];
for (const [body, errors] of strict) {
  test(`{${body}} is used although a strict reader says: ${errors}`, async () => {
    const { config, strictErrors } = await decodeConfig(`{${jsonHead},${body}}`);
    assert.equal(strictDecodingError(strictErrors), `strict decoding error: ${errors}`);
    assert.deepEqual(config, defaultConfig());
  });
}

test('repeated YAML keys make one strict error, ahead of the unknown fields', async () => {
  const { config, strictErrors } = await decodeConfig(`${yamlHead}mode: iptables\nmode: nftables\nx: 1\n`);
  assert.equal(config.mode, 'nftables');
  const duplicate = 'yaml: unmarshal errors:\n  line 4: key "mode" already set in map';
  assert.equal(strictDecodingError(strictErrors), `strict decoding error: ${duplicate}, unknown field "x"`);
});

test('a repeated section adds to the first, field by field', async () => {
  const { config } = await decodeConfig(`{${jsonHead},"ipvs":{"scheduler":"sh"},"ipvs":{"strictARP":true}}`);
  assert.equal(config.ipvs.scheduler, 'sh');
  assert.equal(config.ipvs.strictARP, true);
});

test('an unknown field of a list item is reported with its position', async () => {
  const { strictErrors } = await decodeConfig(`{${jsonHead},"logging":{"vmodule":[{},{"x":1}]}}`);
  assert.deepEqual(strictErrors, ['unknown field "logging.vmodule[1].x"']);
});

test('the number of strict errors is limited', async () => {
  const unknown = Array.from({ length: 500 }, (_, i) => `"x${i}":1`).join(',');
  assert.equal((await decodeConfig(`{${jsonHead},${unknown}}`)).strictErrors.length, 100);
});

const goField = (struct: string, type: string) => `into Go struct field ${struct} of type ${type}`;
const wrongType: [body: string, message: string][] = [
  ['"oomScoreAdj":"much"', `string ${goField('KubeProxyConfiguration.oomScoreAdj', 'int32')}`],
  ['"oomScoreAdj":1.5', `number 1.5 ${goField('KubeProxyConfiguration.oomScoreAdj', 'int32')}`],
  ['"oomScoreAdj":1e3', `number 1e3 ${goField('KubeProxyConfiguration.oomScoreAdj', 'int32')}`],
  ['"oomScoreAdj":2147483648', `number 2147483648 ${goField('KubeProxyConfiguration.oomScoreAdj', 'int32')}`],
  ['"enableProfiling":1', `number ${goField('KubeProxyConfiguration.enableProfiling', 'bool')}`],
  ['"mode":true', `bool ${goField('KubeProxyConfiguration.mode', 'v1alpha1.ProxyMode')}`],
  [
    '"detectLocalMode":[]',
    `array ${goField('KubeProxyConfiguration.detectLocalMode', 'v1alpha1.LocalMode')}`,
  ],
  [
    '"iptables":5',
    `number ${goField('KubeProxyConfiguration.iptables', 'v1alpha1.KubeProxyIPTablesConfiguration')}`,
  ],
  [
    '"iptables":{"syncPeriod":30}',
    `number ${goField('KubeProxyIPTablesConfiguration.iptables.syncPeriod', 'string')}`,
  ],
  ['"nodePortAddresses":"all"', `string ${goField('KubeProxyConfiguration.nodePortAddresses', '[]string')}`],
  ['"nodePortAddresses":[1]', `number ${goField('KubeProxyConfiguration.nodePortAddresses', 'string')}`],
  ['"featureGates":"A=true"', `string ${goField('KubeProxyConfiguration.featureGates', 'map[string]bool')}`],
  ['"featureGates":{"A":"true"}', `string ${goField('KubeProxyConfiguration.featureGates', 'bool')}`],
  [
    '"clientConnection":{"qps":1e99}',
    `number 1e99 ${goField('ClientConnectionConfiguration.clientConnection.qps', 'float32')}`,
  ],
  [
    '"logging":{"verbosity":4294967296}',
    `number 4294967296 ${goField('LoggingConfiguration.logging.verbosity', 'v1.VerbosityLevel')}`,
  ],
  [
    '"logging":{"vmodule":[{"filePattern":1}]}',
    `number ${goField('VModuleItem.logging.vmodule.filePattern', 'string')}`,
  ],
];
for (const [body, message] of wrongType) {
  test(`{${body}} is refused`, async () => {
    const error = { name: 'ConfigError', message: `json: cannot unmarshal ${message}` };
    await assert.rejects(decodeConfig(`{${jsonHead},${body}}`), error);
  });
}

const refused: [text: string, message: string][] = [
  [`{${jsonHead},"configSyncPeriod":""}`, 'time: invalid duration ""'],
  [`{${jsonHead},"configSyncPeriod":null}`, 'time: invalid duration ""'],
  [`{${jsonHead},"conntrack":{"tcpEstablishedTimeout":"5"}}`, 'time: missing unit in duration "5"'],
  [`{${jsonHead},"mode":5,"configSyncPeriod":"x"}`, 'time: invalid duration "x"'],
  [
    `{${jsonHead},"logging":{"flushFrequency":1.5}}`,
    'invalid duration "1.5": json: cannot unmarshal number 1.5 into Go value of type time.Duration',
  ],
  [
    `{${jsonHead},"logging":{"flushFrequency":["a",{"b": null}]}}`,
    'invalid duration "[\\"a\\",{\\"b\\":null}]": json: cannot unmarshal array into Go value of type time.Duration',
  ],
  [
    `{${jsonHead},"logging":{"flushFrequency":9223372036854775808}}`,
    'invalid duration "9223372036854775808": json: cannot unmarshal number 9223372036854775808 into Go value of type time.Duration',
  ],
  [
    `{${jsonHead},"logging":{"options":{"text":{"infoBufferSize":"x"}}}}`,
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  ['', "Object 'Kind' is missing in ''"],
  ['kind: Foo\n', "Object 'apiVersion' is missing in 'kind: Foo\n'"],
  [
    `{"apiVersion":"${API_VERSION}","kind":"Foo"}`,
    `no kind "Foo" is registered for version "${API_VERSION}"`,
  ],
  ['{"apiVersion":"v1","kind":"KubeProxyConfiguration"}', `no kind "${KIND}" is registered for version "v1"`],
  [`{"kind":"${KIND}","apiVersion":"/v1"}`, `no kind "${KIND}" is registered for version "v1"`],
  [`{${jsonHead},"Kind":"Foo"}`, `no kind "Foo" is registered for version "${API_VERSION}"`],
  [
    '{"kind":5,"apiVersion":6}',
    "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
  ],
  ['{"apiVersion":"a/b/c","kind":"X"}', 'unexpected GroupVersion string: a/b/c'],
  [
    '{"apiVersion":"v1","kind":5}',
    "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
  ],
  [
    '{"a":}',
    "couldn't get version/kind; json parse error: invalid character '}' looking for beginning of value",
  ],
  ['a: b: c', 'yaml: mapping values are not allowed in this context'],
];
for (const [text, message] of refused) {
  test(`${JSON.stringify(text.slice(-60))}: ${message}`, async () => {
    await assert.rejects(decodeConfig(text), { name: 'ConfigError', message });
  });
}

test('a text beyond the size limit is refused', async () => {
  const error = {
    name: 'ConfigError',
    message: 'configuration has 262145 characters, at most 262144 are read',
  };
  await assert.rejects(decodeConfig(`${yamlHead}#`.padEnd(MAX_CONFIG_SIZE + 1, '#')), error);
});

async function decodesOrRefuses(text: string): Promise<void> {
  try {
    await decodeConfig(text);
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`);
  }
}

test('any text is decoded or refused with a ConfigError', async () => {
  const syntax = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ':',
    ': ',
    ',',
    '- ',
    '\n',
    '  ',
    '"',
    "'",
    '&a',
    '*a',
    '<<',
    '?',
    '!!int ',
    '|',
    '>',
    '#',
    '%',
    '---',
    '\t',
    '1',
    'mode',
    'kind',
    'null',
    'é',
  );
  const soup = fc.array(syntax, { maxLength: 40 }).map((tokens) => tokens.join(''));
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    soup,
    soup.map((text) => yamlHead + text),
  );
  await fc.assert(fc.asyncProperty(texts, decodesOrRefuses), { numRuns: 2000 });
});

test('any change to a valid file is decoded or refused with a ConfigError', async () => {
  const mutated = fc
    .tuple(configFiles(), fc.nat(), fc.nat(5), fc.string())
    .map(([file, at, length, text]) => {
      const valid = JSON.stringify(file);
      const start = at % valid.length;
      return valid.slice(0, start) + text + valid.slice(start + length);
    });
  await fc.assert(fc.asyncProperty(mutated, decodesOrRefuses));
});

test('texts made to exhaust a reader are refused or read in bounded time', async () => {
  const size = 20_000;
  for (const piece of [
    '[',
    '{',
    '- ',
    '? ',
    'a: ',
    '{"a":',
    '&a ',
    '*a ',
    '!',
    '"',
    '---\n',
    '|',
    '%',
    ': ',
    '<<: ',
    '9',
    '\\',
    '\n',
  ]) {
    await decodesOrRefuses(piece.repeat(Math.floor(size / piece.length)));
    await decodesOrRefuses(`${yamlHead}mode: ${piece.repeat(Math.floor(size / piece.length))}`);
  }
  await decodesOrRefuses(`{${jsonHead},"configSyncPeriod":"${'9'.repeat(size)}s"}`);
  await decodesOrRefuses(`{${jsonHead},"logging":{"flushFrequency":${'['.repeat(9000)}${']'.repeat(9000)}}}`);
  await decodesOrRefuses(
    `{${jsonHead},"logging":{"options":{"text":{"infoBufferSize":"0.${'9'.repeat(size)}"}}}}`,
  );
});

test('userspace mode accepts the two fields that only it uses; other modes report them as upstream does', async () => {
  const fields = '"portRange":"36000-36010","udpIdleTimeout":"1s"';
  const { config, strictErrors } = await decodeConfig(`{${jsonHead},"mode":"userspace",${fields}}`);
  assert.deepEqual(strictErrors, []);
  assert.deepEqual(config.userspace, { portRange: '36000-36010', udpIdleTimeout: '1s' });
  const other = await decodeConfig(`{${jsonHead},${fields}}`);
  assert.deepEqual(other.strictErrors, ['unknown field "udpIdleTimeout"']);
  assert.deepEqual(other.config, defaultConfig());
});
