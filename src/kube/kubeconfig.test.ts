import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { silentLogger } from '../obs/log.ts';
import { clusterAccess } from './access.ts';
import { AccessError, type ClusterAccess } from './cluster-access.ts';

const directory = mkdtempSync(join(tmpdir(), 'kpt-kubeconfig-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const data = Buffer.from(pem).toString('base64');

function file(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

function access(kubeconfig: string, master = '', env: Record<string, string> = {}): Promise<ClusterAccess> {
  return clusterAccess({ kubeconfig, master, env, clock: new FakeClock(), logger: silentLogger });
}

/** A kubeconfig with one context; lines of the cluster and of the user are given. */
function config(cluster: object, user: object = {}): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
  });
}

const server = 'https://192.0.2.1:6443';

describe('a kubeconfig', () => {
  test('in YAML, with several of everything, gives what its current context says', async () => {
    file('ca.crt', pem);
    const path = file(
      'several.yaml',
      `apiVersion: v1
kind: Config
preferences: {}
current-context: second
clusters:
- name: a
  cluster: {server: "https://a:6443"}
- name: b
  cluster:
    server: https://b:6443/prefix/
    certificate-authority: ca.crt
    tls-server-name: kubernetes
contexts:
- name: first
  context: {cluster: a, user: x}
- name: second
  context: {cluster: b, user: y, namespace: other}
users:
- name: x
  user: {token: no}
- name: y
  user:
    token: "yes"
    as: boss
    as-groups: [g1, g2]
    as-user-extra: {reason: [because]}
`,
    );
    const found = await access(path);
    assert.equal(found.server.href, 'https://b:6443/prefix/');
    assert.deepEqual(found.ca, { file: join(directory, 'ca.crt') });
    assert.equal(found.serverName, 'kubernetes');
    assert.deepEqual(await found.credentials.current(), { token: 'yes' });
    assert.deepEqual(found.headers, {
      'Impersonate-User': 'boss',
      'Impersonate-Group': ['g1', 'g2'],
      'Impersonate-Extra-reason': ['because'],
    });
  });

  test('may hold certificates as data, which win over files', async () => {
    const user = { 'client-certificate-data': data, 'client-key-data': data, 'client-key': 'missing' };
    const found = await access(
      file(
        'data',
        config({ server, 'certificate-authority': 'missing', 'certificate-authority-data': data }, user),
      ),
    );
    assert.deepEqual(
      [found.ca, found.clientCert, found.clientKey],
      [{ text: pem }, { text: pem }, { text: pem }],
    );
  });

  test('a --master that is no URL is an error that names it', async () => {
    await assert.rejects(access('', 'a b'), { message: '--master: want a URL, got "http://a b"' });
    await assert.rejects(access('', 'https:///x'), { message: '--master: want a URL, got "https:///x"' });
    await assert.rejects(access('', 'ftp://x'), {
      message: '--master: scheme "ftp" is not supported; use http or https',
    });
  });

  test('is overridden by --master, to which tls-server-name does not apply', async () => {
    const path = file('master', config({ server, 'tls-server-name': 'x', 'insecure-skip-tls-verify': true }));
    const found = await access(path, 'https://198.51.100.1:8443');
    assert.equal(found.server.href, 'https://198.51.100.1:8443/');
    assert.equal(found.serverName, undefined);
    assert.ok(found.skipVerify);
  });

  test('a server without a scheme is plain HTTP unless TLS settings are given', async () => {
    assert.equal((await access('', '127.0.0.1:8080')).server.href, 'http://127.0.0.1:8080/');
    const secure = file(
      'no-scheme',
      config({ server: '127.0.0.1:6443', 'certificate-authority-data': data }),
    );
    assert.equal((await access(secure)).server.href, 'https://127.0.0.1:6443/');
  });

  test('keeps the server as written for metrics, with a port only if it has one', async () => {
    for (const [written, authority] of [
      ['https://api.example.com:443', 'api.example.com:443'],
      ['https://api.example.com:443/prefix', 'api.example.com:443'],
      ['https://api.example.com', 'api.example.com'],
      ['https://[fd00::1]:443/', '[fd00::1]:443'],
      ['https://me:s3cret@192.0.2.1:443', '192.0.2.1:443'],
      ['192.0.2.1:80', '192.0.2.1:80'],
    ] as const) {
      assert.equal((await access(file('written', config({ server: written })))).authority, authority);
      assert.equal((await access('', written)).authority, authority);
    }
  });

  test("passes the server as written to an exec plugin, and tls-server-name only for the file's server", async () => {
    const apiVersion = 'client.authentication.k8s.io/v1';
    const answer = JSON.stringify({ kind: 'ExecCredential', apiVersion, status: { token: 'x' } });
    const infoFile = join(directory, 'infoFile');
    const command = file(
      'plugin',
      `#!/bin/sh\nprintf %s "$KUBERNETES_EXEC_INFO" > "${infoFile}"\necho '${answer}'\n`,
    );
    chmodSync(command, 0o755);
    const exec = { apiVersion, command, interactiveMode: 'Never', provideClusterInfo: true };
    const cluster = { server: 'https://API.example.com:443/', 'tls-server-name': 'kubernetes' };
    const path = file('exec', config(cluster, { exec }));
    await (await access(path)).credentials.current();
    assert.deepEqual(JSON.parse(readFileSync(infoFile, 'utf8')).spec.cluster, cluster);
    await (await access(path, 'https://192.0.2.1:443')).credentials.current();
    assert.deepEqual(JSON.parse(readFileSync(infoFile, 'utf8')).spec.cluster, {
      server: 'https://192.0.2.1:443',
    });
  });
});

describe('a bad kubeconfig is refused with one clear error', () => {
  const cases: [name: string, text: string, message: string][] = [
    ['scalar', 'hello', 'want an object, got "hello"'],
    ['broken', 'a: [1, "s3cret', 'not valid YAML at line 1, column 15 (MISSING_CHAR)'],
    ['duplicate key', 'a: 1\na: 2\n', 'not valid YAML at line 2, column 1 (DUPLICATE_KEY)'],
    ['kind', '{kind: Pod}', 'kind: want "Config", got "Pod"'],
    ['clusters', '{clusters: {}}', 'clusters: want an array, got an object'],
    ['twice', '{users: [{name: a}, {name: a}]}', 'users[1].name: want a name that is used once, got "a"'],
    ['server', config({ server: 5 }), 'clusters[0].cluster.server: want a string, got 5'],
    ['token', config({ server }, { token: 123456 }), 'users[0].user.token: want a string'],
    [
      'key data',
      config({ server }, { 'client-key-data': ['s3cret'] }),
      'users[0].user["client-key-data"]: want a string',
    ],
    ['context', '{current-context: gone}', 'current-context: no context is called "gone"'],
    [
      'cluster',
      '{current-context: a, contexts: [{name: a, context: {cluster: b}}]}',
      'context "a": no cluster is called "b"',
    ],
    [
      'user',
      '{current-context: a, contexts: [{name: a, context: {cluster: b, user: z}}], clusters: [{name: b, cluster: {server: x}}]}',
      'context "a": no user is called "z"',
    ],
    ['no server', config({}), 'cluster "c" has no server'],
    ['bad URL', config({ server: 'https://' }), 'cluster "c": server: want a URL, got "https://"'],
    [
      'scheme',
      config({ server: 'ftp://x' }),
      'cluster "c": server: scheme "ftp" is not supported; use http or https',
    ],
    [
      'socks',
      config({ server, 'proxy-url': 'socks5://user:s3cret@x:1080' }),
      'cluster "c": proxy-url: scheme "socks5" is not supported; use http or https',
    ],
    [
      'insecure with CA',
      config({ server, 'insecure-skip-tls-verify': true, 'certificate-authority-data': data }),
      'cluster "c": insecure-skip-tls-verify and certificate-authority exclude each other',
    ],
    [
      'CA data',
      config({ server, 'certificate-authority-data': 's3cret' }),
      'cluster "c": certificate-authority-data: not a base64 encoded PEM block',
    ],
    [
      'key without certificate',
      config({ server }, { 'client-key-data': data }),
      'user "u": client-key is given without client-certificate',
    ],
    [
      'password',
      config({ server }, { username: 'a', password: 's3cret' }),
      'user "u": username and password are not supported',
    ],
    [
      'auth provider',
      config({ server }, { 'auth-provider': { name: 'oidc' } }),
      'user "u": auth-provider "oidc" is not supported; use exec',
    ],
    [
      'exec version',
      config({ server }, { exec: { command: 'x', apiVersion: 'client.authentication.k8s.io/v1alpha1' } }),
      'user "u": exec: apiVersion "client.authentication.k8s.io/v1alpha1" is not supported; ' +
        'use client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1',
    ],
    [
      'exec mode missing',
      config({ server }, { exec: { command: 'x', apiVersion: 'client.authentication.k8s.io/v1' } }),
      'user "u": exec: interactiveMode must be set for apiVersion "client.authentication.k8s.io/v1"',
    ],
    [
      'exec mode',
      config(
        { server },
        { exec: { command: 'x', apiVersion: 'client.authentication.k8s.io/v1', interactiveMode: 'Always' } },
      ),
      'user "u": exec: interactiveMode "Always" needs a terminal',
    ],
    [
      'exec command',
      config({ server }, { exec: { apiVersion: 'client.authentication.k8s.io/v1beta1' } }),
      'user "u": exec: command is empty',
    ],
  ];
  for (const [name, text, message] of cases) {
    test(name, async () => {
      const path = file('bad', text);
      await assert.rejects(access(path), (error) => {
        assert.ok(error instanceof AccessError, String(error));
        assert.equal(error.message, `kubeconfig ${path}: ${message}`);
        assert.ok(!error.message.includes('s3cret'));
        return true;
      });
    });
  }

  test('that is empty', async () => {
    await assert.rejects(access(file('empty', '')), {
      message:
        'invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable',
    });
  });

  test('that is missing, or names missing files', async () => {
    await assert.rejects(access('/does/not/exist'), {
      message: 'stat /does/not/exist: no such file or directory',
    });
    await assert.rejects(access(directory), {
      message: `error loading config file "${directory}": read ${directory}: is a directory`,
    });
    const missing = join(directory, 'missing');
    for (const [name, cluster, user] of [
      ['cluster "c": certificate-authority', { server, 'certificate-authority': 'missing' }, {}],
      [
        'user "u": client-certificate',
        { server },
        { 'client-certificate': 'missing', 'client-key': 'missing' },
      ],
      ['user "u": tokenFile', { server }, { tokenFile: 'missing' }],
    ] as const) {
      const path = file('names-missing', config(cluster, user));
      await assert.rejects(access(path), {
        message: `kubeconfig ${path}: ${name}: open ${missing}: no such file or directory`,
      });
    }
  });
});

describe('inside a cluster', () => {
  test('the environment must name the server', async () => {
    const message =
      'unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined';
    await assert.rejects(access(''), { message });
    await assert.rejects(access('', '', { KUBERNETES_SERVICE_HOST: '10.96.0.1' }), { message });
  });

  test('the service account gives token and CA', async () => {
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const options = { kubeconfig: '', master: '', env, clock: new FakeClock(), logger: silentLogger };
    const empty = join(directory, 'nothing');
    await assert.rejects(clusterAccess({ ...options, serviceAccountDirectory: empty }), {
      message: `open ${empty}/token: no such file or directory`,
    });
    file('token', 'first\n');
    file('ca.crt', pem);
    const found = await clusterAccess({ ...options, serviceAccountDirectory: directory });
    assert.equal(found.server.href, 'https://[fd00::1]/');
    assert.equal(found.authority, '[fd00::1]:443');
    assert.deepEqual(found.ca, { file: join(directory, 'ca.crt') });
    assert.deepEqual(await found.credentials.current(), { token: 'first' });
    file('token', 'second');
    assert.deepEqual(await found.credentials.current(), { token: 'second' });
    rmSync(join(directory, 'token'));
    assert.deepEqual(
      await found.credentials.current(),
      { token: 'second' },
      'the last token that could be read',
    );
    file('token', ' \n');
    await assert.rejects(found.credentials.current(), /read empty token from file/);
  });
});
