import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { configFiles } from '../../test/config/arbitrary-files.ts';
import { SECOND } from '../lib/duration.ts';
import { decodeConfig } from './decode.ts';
import { applyPlatformDefaults, defaultConfig } from './defaults.ts';
import { configToJSON, configToYAML, encodeConfig } from './encode.ts';
import { writeYaml } from './write-yaml.ts';

const vectors = new URL('../../test/vectors/', import.meta.url);

test('the default configuration is written as upstream writes it, byte for byte', () => {
  const expected = readFileSync(new URL('cli/default-config.yaml', vectors), 'utf8');
  assert.equal(configToYAML(applyPlatformDefaults(defaultConfig()).config), expected);
});

for (const mode of ['iptables', 'nftables']) {
  test(`/configz in ${mode} mode reads back to the same bytes`, async () => {
    const recorded = JSON.parse(readFileSync(new URL(`pages/${mode}.json`, vectors), 'utf8'));
    const body: string = recorded.pages['10249/configz'].body;
    const [, file = ''] = /^\{"kubeproxy\.config\.k8s\.io":(.*)\}$/.exec(body.trim()) ?? [];
    assert.equal(configToJSON((await decodeConfig(file)).config), file);
  });
}

test('settings of other modes are written as zero', () => {
  const config = { ...defaultConfig(), syncPeriod: 7n * SECOND, minSyncPeriod: SECOND };
  config.linux = { ...config.linux, masqueradeAll: true };
  const written = (mode: string) => {
    const { iptables, ipvs, nftables } = encodeConfig({ ...config, mode });
    return { iptables, ipvs, nftables };
  };
  const section = (syncPeriod: string, minSyncPeriod: string) => ({ syncPeriod, minSyncPeriod });
  const [used, unused] = [section('7s', '1s'), section('0s', '0s')];
  for (const mode of ['', 'iptables', 'userspace', 'kernelspace']) {
    assert.partialDeepStrictEqual(written(mode), {
      iptables: { ...used, masqueradeAll: true },
      ipvs: unused,
      nftables: { ...unused, masqueradeAll: false },
    });
  }
  assert.partialDeepStrictEqual(written('ipvs'), {
    iptables: { ...unused, masqueradeAll: true },
    ipvs: used,
    nftables: { ...unused, masqueradeAll: false },
  });
  assert.partialDeepStrictEqual(written('nftables'), {
    iptables: { ...unused, masqueradeAll: false },
    ipvs: unused,
    nftables: { ...used, masqueradeAll: true },
  });
});

test('some fields are not written when zero', () => {
  const config = defaultConfig();
  assert.ok(!('featureGates' in encodeConfig(config)) && !('windowsRunAsService' in encodeConfig(config)));
  config.featureGates = { B: true, A: false };
  config.windowsRunAsService = true;
  config.logging.vmodule = [{ filePattern: 'a', verbosity: 1 }];
  config.logging.options.json.splitStream = true;
  const encoded = encodeConfig(config);
  assert.deepEqual(Object.keys(encoded.featureGates ?? {}), ['A', 'B']);
  assert.equal(encoded.windowsRunAsService, true);
  assert.partialDeepStrictEqual(encoded.logging, {
    vmodule: [{ filePattern: 'a', verbosity: 1 }],
    options: { text: { infoBufferSize: '0' }, json: { splitStream: true } },
  });
});

test('JSON escapes what Go escapes', () => {
  const json = configToJSON({ ...defaultConfig(), hostnameOverride: '<a&b>\u2028' });
  assert.ok(json.includes('"hostnameOverride":"\\u003ca\\u0026b\\u003e\\u2028"'));
});

test('a float is written with the fewest digits that identify it', () => {
  const config = defaultConfig();
  config.clientConnection.qps = Math.fround(0.1);
  assert.ok(configToYAML(config).includes('  qps: 0.1\n'));
  assert.ok(configToJSON(config).includes('"qps":0.1,'));
});

test('a configuration that is written and read again is the same, in YAML and JSON', async () => {
  await fc.assert(
    fc.asyncProperty(configFiles(), async (file) => {
      const { config, strictErrors } = await decodeConfig(JSON.stringify(file));
      assert.deepEqual(strictErrors, []);
      assert.deepEqual((await decodeConfig(configToYAML(config))).config, config);
      assert.deepEqual((await decodeConfig(configToJSON(config))).config, config);
      assert.deepEqual((await decodeConfig(writeYaml(JSON.parse(JSON.stringify(file))))).config, config);
    }),
  );
});
