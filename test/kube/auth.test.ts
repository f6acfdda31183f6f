import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { clusterAccess } from '../../src/kube/access.ts';
import type { RestClient } from '../../src/kube/rest-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { TestAuthority } from '../cluster/apiserver/certificates.ts';
import { type ApiServer, type ApiServerOptions, startApiServer } from '../cluster/apiserver/server.ts';
import { apiNode } from '../cluster/objects.ts';
import { LogRecorder } from '../log-recorder.ts';
import { startConnectProxy } from './connect-proxy.ts';
import { testClient } from './harness.ts';

const authority = new TestAuthority();
const stranger = new TestAuthority('stranger');
const directory = mkdtempSync(join(tmpdir(), 'kpt-auth-'));
after(() => {
  authority.remove();
  stranger.remove();
  rmSync(directory, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

interface Secured {
  readonly server: ApiServer;
  readonly tokens: Set<string>;
  [Symbol.asyncDispose](): Promise<void>;
}

async function secureServer(options: ApiServerOptions = {}): Promise<Secured> {
  const tokens = new Set(['good']);
  const server = await startApiServer({
    tls: authority.server(),
    clientCa: authority.cert,
    tokens,
    ...options,
  });
  return { server, tokens, [Symbol.asyncDispose]: () => server.close() };
}

interface Connected {
  readonly client: RestClient;
  readonly log: LogRecorder;
  [Symbol.dispose](): void;
}

/** A client that a kubeconfig describes. */
async function connected(
  cluster: object,
  user: object,
  env: Record<string, string> = {},
): Promise<Connected> {
  const log = new LogRecorder();
  const config = {
    'current-context': 'main',
    contexts: [{ name: 'main', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user }],
  };
  const kubeconfig = file('kubeconfig', JSON.stringify(config));
  const access = await clusterAccess({ kubeconfig, master: '', env, clock: systemClock, logger: log });
  const client = testClient(access, { logger: log });
  return { client, log, [Symbol.dispose]: () => client.close() };
}

const list = { method: 'GET', path: '/api/v1/nodes' } as const;
const trusting = (server: ApiServer) => ({
  server: server.url,
  'certificate-authority-data': base64(authority.cert),
});

describe('the server', () => {
  test('is trusted with its CA, given as data or as a file', async () => {
    await using secured = await secureServer();
    const { url } = secured.server;
    for (const ca of [
      { 'certificate-authority-data': base64(authority.cert) },
      { 'certificate-authority': file('ca.crt', authority.cert) },
      { 'insecure-skip-tls-verify': true },
    ]) {
      using c = await connected({ server: url, ...ca }, { token: 'good' });
      assert.equal((await c.client.request(list)).status, 200);
    }
  });

  test('is not trusted with another CA or without one', async () => {
    await using secured = await secureServer();
    for (const ca of [{ 'certificate-authority-data': base64(stranger.cert) }, {}]) {
      using c = await connected({ server: secured.server.url, ...ca }, { token: 'good' });
      await assert.rejects(c.client.request(list), {
        name: 'TransportError',
        message: "the server's certificate is signed by an unknown authority",
      });
    }
    assert.equal(secured.server.requests.length, 0);
  });

  test('must have a certificate for its name', async () => {
    await using secured = await secureServer({ tls: authority.server(['DNS:kubernetes']) });
    using nameless = await connected(trusting(secured.server), { token: 'good' });
    await assert.rejects(nameless.client.request(list), { name: 'TransportError' });
    using named = await connected(
      { ...trusting(secured.server), 'tls-server-name': 'kubernetes' },
      { token: 'good' },
    );
    assert.equal((await named.client.request(list)).status, 200);
    using other = await connected(
      { ...trusting(secured.server), 'tls-server-name': 'other' },
      { token: 'good' },
    );
    await assert.rejects(other.client.request(list), { name: 'TransportError' });
  });

  test('may change its CA at run time', async () => {
    await using secured = await secureServer();
    const ca = file('rotating-ca.crt', authority.cert);
    using c = await connected({ server: secured.server.url, 'certificate-authority': ca }, { token: 'good' });
    await c.client.request(list);
    secured.server.useCertificate(stranger.server());
    secured.server.disconnect();
    await assert.rejects(c.client.request(list), { name: 'TransportError' });
    file('rotating-ca.crt', stranger.cert);
    assert.equal((await c.client.request(list)).status, 200);
  });
});

test('connections after the first resume its TLS session, which saves both ends a full handshake', async () => {
  await using secured = await secureServer();
  const { server } = secured;
  server.put('nodes', apiNode('a'));
  using c = await connected(trusting(server), { token: 'good' });
  const watch = { ...list, query: { watch: 'true' }, idleMs: () => 5000, unthrottled: true };
  const opened: AsyncIterator<Uint8Array>[] = [];
  for (let i = 0; i < 3; i++) {
    const body = (await c.client.stream(watch))[Symbol.asyncIterator]();
    opened.push(body);
    // The server's ticket precedes its first data.
    await body.next();
  }
  assert.deepEqual(
    server.requests.map(({ resumesSession }) => resumesSession),
    [false, true, true],
  );
  await Promise.all(opened.map((body) => body.return?.()));
});

describe('a client certificate', () => {
  test('is sent, from data or from a file; without one, access is refused', async () => {
    await using secured = await secureServer();
    const { cert, key } = authority.client('system:kube-proxy');
    const users = [
      { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) },
      { 'client-certificate': file('client.crt', cert), 'client-key': file('client.key', key) },
    ];
    for (const user of users) {
      using c = await connected(trusting(secured.server), user);
      assert.equal((await c.client.request(list)).status, 200);
      assert.equal(secured.server.requests.at(-1)?.certificate, 'system:kube-proxy');
    }
    const other = stranger.client('system:kube-proxy');
    using c = await connected(trusting(secured.server), {
      'client-certificate-data': base64(other.cert),
      'client-key-data': base64(other.key),
    });
    await assert.rejects(c.client.request(list), { name: 'ApiError', status: 401, reason: 'Unauthorized' });
  });

  test('is replaced without a restart, also when the files change one after the other', async () => {
    await using secured = await secureServer();
    const first = authority.client('first');
    const second = authority.client('second');
    const user = { 'client-certificate': file('r.crt', first.cert), 'client-key': file('r.key', first.key) };
    using c = await connected(trusting(secured.server), user);
    const shown = async () => {
      await c.client.request(list);
      return secured.server.requests.at(-1)?.certificate;
    };
    assert.equal(await shown(), 'first');
    file('r.crt', second.cert);
    assert.equal(await shown(), 'first', 'certificate and key do not match yet');
    assert.ok(c.log.lines.some(({ message }) => message.includes('unusable')));
    file('r.key', second.key);
    assert.equal(await shown(), 'second');
    rmSync(join(directory, 'r.key'));
    assert.equal(await shown(), 'second', 'the last that could be read');
  });
});

describe('a token', () => {
  test('from a file is read again when it changes', async () => {
    await using secured = await secureServer();
    using c = await connected(trusting(secured.server), {
      tokenFile: file('token', 'good\n'),
      token: 'ignored',
    });
    await c.client.request(list);
    secured.tokens.delete('good');
    secured.tokens.add('better');
    await assert.rejects(c.client.request(list), { status: 401 });
    file('token', 'better');
    await c.client.request(list);
    assert.equal(secured.server.requests.at(-1)?.headers.authorization, 'Bearer better');
  });

  test('of a service account is found inside a cluster', async () => {
    await using secured = await secureServer();
    const { hostname, port } = new URL(secured.server.url);
    file('token', 'good');
    file('ca.crt', authority.cert);
    const access = await clusterAccess({
      kubeconfig: '',
      master: '',
      env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
      clock: systemClock,
      logger: new LogRecorder(),
      serviceAccountDirectory: directory,
    });
    const client = testClient(access);
    assert.equal((await client.request(list)).status, 200);
    client.close();
  });
});

describe('an exec plugin', () => {
  const version = 'client.authentication.k8s.io/v1';

  /** A plugin that prints `status` from a file, and writes down how it was called. */
  function plugin(name: string): string {
    const script = `#!/bin/sh
printf '%s\\n' "$*|$GREETING|$KUBERNETES_EXEC_INFO" >> "${directory}/${name}.calls"
cat "${directory}/${name}.out"
`;
    const path = file(name, script);
    chmodSync(path, 0o755);
    file(`${name}.calls`, '');
    return path;
  }

  function answers(name: string, status: object, apiVersion = version): void {
    file(`${name}.out`, JSON.stringify({ kind: 'ExecCredential', apiVersion, status }));
  }

  const calls = (name: string) =>
    readFileSync(join(directory, `${name}.calls`), 'utf8')
      .trim()
      .split('\n');
  const exec = (command: string, more: object = {}) => ({
    exec: { apiVersion: version, command, interactiveMode: 'Never', ...more },
  });
  const env = { PATH: process.env.PATH ?? '' };

  test('runs once, with its arguments, environment and the cluster', async () => {
    await using secured = await secureServer();
    plugin('once');
    answers('once', { token: 'good' });
    const user = exec('./once', {
      args: ['get', 'token'],
      env: [{ name: 'GREETING', value: 'hello' }],
      provideClusterInfo: true,
    });
    const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }];
    using c = await connected({ ...trusting(secured.server), extensions }, user, env);
    await Promise.all([c.client.request(list), c.client.request(list)]);
    await c.client.request(list);
    const [call = '', ...others] = calls('once');
    assert.equal(others.length, 0);
    const [args, greeting, info = ''] = call.split('|');
    assert.deepEqual([args, greeting], ['get token', 'hello']);
    assert.deepEqual(JSON.parse(info), {
      kind: 'ExecCredential',
      apiVersion: version,
      spec: {
        interactive: false,
        cluster: {
          server: secured.server.url,
          'certificate-authority-data': base64(authority.cert),
          config: { audience: 'x' },
        },
      },
    });
  });

  test('runs again when its credential has expired or is refused', async () => {
    await using secured = await secureServer();
    const command = plugin('again');
    answers('again', { token: 'good', expirationTimestamp: '2020-01-01T00:00:00Z' });
    using c = await connected(trusting(secured.server), exec(command), env);
    await c.client.request(list);
    await c.client.request(list);
    assert.equal(calls('again').length, 2);
    answers('again', { token: 'good', expirationTimestamp: '2999-01-01T00:00:00Z' });
    await c.client.request(list);
    await c.client.request(list);
    assert.equal(calls('again').length, 3);
    secured.tokens.delete('good');
    secured.tokens.add('better');
    answers('again', { token: 'better' });
    assert.equal((await c.client.request(list)).status, 200);
    assert.equal(calls('again').length, 4);
    secured.tokens.clear();
    await assert.rejects(c.client.request(list), { name: 'ApiError', status: 401 });
    assert.equal(calls('again').length, 5, 'once per refusal, not for ever');
  });

  test('may give a certificate instead of a token', async () => {
    await using secured = await secureServer();
    const { cert, key } = authority.client('from-plugin');
    const command = plugin('cert');
    answers(
      'cert',
      { clientCertificateData: cert, clientKeyData: key },
      'client.authentication.k8s.io/v1beta1',
    );
    const user = { exec: { apiVersion: 'client.authentication.k8s.io/v1beta1', command } };
    using c = await connected(trusting(secured.server), user, env);
    await c.client.request(list);
    assert.equal(secured.server.requests.at(-1)?.certificate, 'from-plugin');
  });

  const failures: [name: string, output: string | undefined, message: RegExp][] = [
    ['that is not installed', undefined, /exec plugin ".*not-there" not found: get it from example\.com/],
    ['that fails', 'exit', /exec plugin ".*" failed with exit code 3: no luck/],
    ['that prints nonsense', 'hello', /its output is not a JSON object/],
    ['that prints another kind', '{"kind":"Pod"}', /its output is not an ExecCredential/],
    ['of another version', '{"kind":"ExecCredential","apiVersion":"v9"}', /its output is not of version/],
    [
      'that gives nothing',
      `{"kind":"ExecCredential","apiVersion":"${version}","status":{}}`,
      /neither a token nor a certificate/,
    ],
    [
      'that gives half a certificate',
      `{"kind":"ExecCredential","apiVersion":"${version}","status":{"clientCertificateData":"x"}}`,
      /do not come together/,
    ],
  ];
  for (const [name, output, message] of failures) {
    test(`${name} is reported`, async () => {
      await using secured = await secureServer();
      let command = join(directory, 'not-there');
      if (output !== undefined) command = plugin('bad');
      if (output === 'exit') {
        file('bad', '#!/bin/sh\necho no luck >&2\nexit 3\n');
        chmodSync(command, 0o755);
      } else file('bad.out', output ?? '');
      using c = await connected(
        trusting(secured.server),
        exec(command, { installHint: 'get it from example.com' }),
        env,
      );
      await assert.rejects(c.client.request(list), { name: 'TransportError', message });
    });
  }
});

describe('a proxy', () => {
  for (const secureProxy of [false, true]) {
    test(`over ${secureProxy ? 'TLS' : 'plain HTTP'} is used, with its own login`, async () => {
      await using secured = await secureServer();
      const proxy = await startConnectProxy(secureProxy ? authority.server() : undefined);
      try {
        const url = proxy.url.replace('://', '://joe:p%40ss@');
        using c = await connected({ ...trusting(secured.server), 'proxy-url': url }, { token: 'good' });
        assert.equal((await c.client.request(list)).status, 200);
        assert.equal((await c.client.request(list)).status, 200);
        assert.deepEqual(proxy.targets, [new URL(secured.server.url).host], 'one connection, used twice');
        assert.deepEqual(proxy.logins, [`Basic ${base64('joe:p@ss')}`]);
      } finally {
        await proxy.close();
      }
    });
  }

  test('does not weaken the check of the server', async () => {
    await using secured = await secureServer();
    const proxy = await startConnectProxy();
    try {
      const cluster = { server: secured.server.url, 'certificate-authority-data': base64(stranger.cert) };
      using c = await connected({ ...cluster, 'proxy-url': proxy.url }, { token: 'good' });
      await assert.rejects(c.client.request(list), {
        name: 'TransportError',
        message: "the server's certificate is signed by an unknown authority",
      });
    } finally {
      await proxy.close();
    }
  });

  test('that refuses or does not answer is reported', async () => {
    await using secured = await secureServer();
    const proxy = await startConnectProxy();
    proxy.status = 407;
    using c = await connected({ ...trusting(secured.server), 'proxy-url': proxy.url }, { token: 'good' });
    await assert.rejects(c.client.request(list), {
      name: 'TransportError',
      message: /refused to connect .* 407/,
    });
    await proxy.close();
    await assert.rejects(c.client.request(list), { name: 'TransportError', message: /proxy .*ECONNREFUSED/ });
  });

  test('is used for a server without TLS, too', async () => {
    const server = await startApiServer();
    const proxy = await startConnectProxy();
    try {
      using c = await connected({ server: server.url, 'proxy-url': proxy.url }, {});
      assert.equal((await c.client.request(list)).status, 200);
      assert.equal(proxy.targets.length, 1);
    } finally {
      await proxy.close();
      await server.close();
    }
  });
});
