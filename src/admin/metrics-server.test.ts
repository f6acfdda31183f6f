import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { parse as parseYaml } from 'yaml';
import { eventually } from '../../test/eventually.ts';
import { FakeClock } from '../../test/fake-clock.ts';
import { serveHttp } from '../../test/serve-http.ts';
import { Capacity } from '../http/capacity.ts';
import { createRouter, notFound } from '../http/router.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../obs/log.ts';
import { createProxyMetrics } from '../obs/proxy-metrics.ts';
import { Registry } from '../obs/registry.ts';
import { metricsHandler } from './metrics-page.ts';
import { type MetricsServerOptions, metricsServerHandler } from './metrics-server.ts';
import { SharedPages } from './shared-pages.ts';

/** Its wall clock stands still. Its monotonic one is that of the server, with which requests are compared. */
class PageClock extends FakeClock {
  override monotonic(): number {
    return systemClock.monotonic();
  }
}

const started = Date.UTC(2026, 10, 15, 3, 56, 49) / 1000;

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly bytes: Buffer;
}

async function setup(t: TestContext, overrides: Partial<MetricsServerOptions> = {}) {
  const clock = new PageClock((started + 10) * 1000);
  const registry = new Registry({ clock, onCollectError: assert.fail });
  const metrics = createProxyMetrics(registry, []);
  const levels: number[] = [];
  const handler = metricsServerHandler({
    mode: 'nftables',
    registry,
    configz: () => '{"kubeproxy.config.k8s.io":{}}',
    flags: () =>
      new Map([
        ['v', '0'],
        ['bind-address', '0.0.0.0'],
        ['cluster-cidr', ''],
      ]),
    gates: { flagz: true, statusz: true },
    profiling: true,
    setVerbosity: (level) => levels.push(level),
    inspection: notFound,
    version: { runtime: 'v24.21.0', binary: '1.37' },
    startTime: started,
    clock,
    logger: silentLogger,
    random: () => 0,
    ...overrides,
  });
  const { port, url } = await serveHttp(t, handler);
  return { clock, metrics, levels, get: client(port), url };
}

/** node:http rather than fetch: it neither decompresses nor adds headers of its own. */
function client(port: number) {
  return async (
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
    body = '',
  ): Promise<Answer> => {
    const call = request({ host: '127.0.0.1', port, path, method, headers }).end(body);
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    const bytes = Buffer.concat(await response.toArray());
    return { status: response.statusCode ?? 0, headers: response.headers, body: bytes.toString(), bytes };
  };
}

interface RecordedPage {
  status: number;
  headers: string[];
  body: string;
}

const vectors: Record<string, RecordedPage>[] = ['iptables', 'nftables'].map(
  (mode) =>
    JSON.parse(readFileSync(new URL(`../../test/vectors/pages/${mode}.json`, import.meta.url), 'utf8')).pages,
);

/** Headers that Go and Node set by themselves, each in its way. */
const transport = ['date', 'content-length', 'connection', 'keep-alive'];

for (const pages of vectors) {
  const mode = pages['10249/proxyMode']?.body ?? '';
  test(`${mode}: pages have the status, headers and body of the recorded ones`, async (t) => {
    const flagz = pages['10249/flagz']?.body ?? '';
    const between = flagz.includes('v=0') ? '=' : ' ';
    const flags = flagz
      .split('\n')
      .slice(3, -1)
      .map((line): [string, string] => {
        const at = line.indexOf(between);
        return [line.slice(0, at), line.slice(at + 1)];
      });
    const { get } = await setup(t, {
      mode,
      configz: () => pages['10249/configz']?.body ?? '',
      flags: () => new Map(flags.toReversed()),
      random: () => (between === '=' ? 0.5 : 0.75),
    });
    assert.equal(flags.length, 57);
    for (const [key, recorded] of Object.entries(pages)) {
      if (!key.startsWith('10249/')) continue;
      const answer = await get(key.slice('10249'.length));
      assert.equal(answer.status, recorded.status, key);
      const shown = Object.fromEntries(
        Object.entries(answer.headers).filter(([name]) => !transport.includes(name)),
      );
      const wanted = recorded.headers
        .map((line) => line.split(': '))
        .map(([n = '', v]) => [n.toLowerCase(), v]);
      assert.deepEqual(shown, Object.fromEntries(wanted), key);
      if (!/statusz|pprof/.test(key)) assert.equal(answer.body, recorded.body, key);
    }
  });
}

test('statusz has the recorded lines, with a random separator per request', async (t) => {
  const draws = [0, 0.25, 0.5];
  const { get, clock } = await setup(t, { random: () => draws.shift() ?? 0 });
  // The program has run for ten seconds, whatever the clock is set to.
  clock.setWall(-86_400_000);
  const expected = (vectors[0]?.['10249/statusz']?.body ?? '').replace('go1.26.7', 'v24.21.0');
  // The first draw is that of /flagz, made once.
  assert.equal(
    (await get('/statusz')).body,
    expected.replace(/^([A-Z][a-z ]+): (?=\S)/gm, '$1:  ').replace('Warning:  ', 'Warning: '),
  );
  assert.match((await get('/statusz')).body, /^Up= 0 hr 00 min 10 sec$/m);
  assert.equal((await get('/statusz')).body, expected);
});

test('z-pages return objects by kind and version, and 406 for others', async (t) => {
  const { get } = await setup(t);
  const accept = (type: string, kind: string, version: string) => ({
    Accept: `${type};as=${kind};v=${version};g=config.k8s.io`,
  });
  const flagz = await get('/flagz', accept('application/json', 'Flagz', 'v1beta1'));
  assert.equal(flagz.headers['content-type'], 'application/json');
  assert.equal(flagz.headers.warning, undefined);
  assert.deepEqual(JSON.parse(flagz.body), {
    kind: 'Flagz',
    apiVersion: 'config.k8s.io/v1beta1',
    metadata: { name: 'kube-proxy' },
    flags: { 'bind-address': '0.0.0.0', 'cluster-cidr': '', v: '0' },
  });
  const statusz = await get('/statusz', accept('application/yaml', 'Statusz', 'v1alpha1'));
  assert.equal(statusz.headers['content-type'], 'application/yaml');
  assert.match(statusz.headers.warning ?? '', /^299 - "config\.k8s\.io\/v1alpha1 Statusz is deprecated/);
  assert.deepEqual(parseYaml(statusz.body), {
    kind: 'Statusz',
    apiVersion: 'config.k8s.io/v1alpha1',
    metadata: { name: 'kube-proxy' },
    startTime: '2026-11-15T03:56:49Z',
    uptimeSeconds: 10,
    goVersion: 'v24.21.0',
    binaryVersion: '1.37',
    emulationVersion: '1.37',
    paths: ['/configz', '/flagz', '/healthz', '/metrics', '/proxyMode'],
  });
  const refused = [
    'application/json',
    'image/png',
    'application/json;as=Flagz;v=v2;g=config.k8s.io',
    'application/json;as=Statusz;v=v1beta1;g=config.k8s.io',
    'text/plain;q=0',
  ];
  for (const Accept of refused) assert.equal((await get('/flagz', { Accept })).status, 406, Accept);
  for (const Accept of ['*/*', 'text/*', 'image/png, text/plain;q=0.1']) {
    assert.match((await get('/flagz', { Accept })).body, /^\nkube-proxy flagz\n/, Accept);
  }
});

test('pages behind feature gates and profiling are absent without them', async (t) => {
  const { get } = await setup(t, { gates: { flagz: false, statusz: false }, profiling: false });
  for (const path of ['/flagz', '/statusz', '/debug/pprof', '/debug/pprof/', '/debug/flags/v']) {
    assert.equal((await get(path)).status, 404, path);
  }
  const { get: withStatus } = await setup(t, { gates: { flagz: false, statusz: true } });
  assert.match((await withStatus('/statusz')).body, /^Paths: \/configz \/healthz \/metrics \/proxyMode$/m);
});

test('/healthz supports verbose and exclude, and /metrics/slis shows its results', async (t) => {
  const { get } = await setup(t);
  assert.doesNotMatch((await get('/metrics/slis')).body, /healthcheck/);
  assert.equal((await get('/healthz/ping')).body, 'ok');
  assert.equal((await get('/healthz?verbose')).body, '[+]ping ok\nhealthz check passed\n');
  assert.equal((await get('/healthz?exclude=ping')).body, 'ok');
  assert.equal(
    (await get('/healthz?verbose=1&exclude=ping')).body,
    '[+]ping excluded: ok\nhealthz check passed\n',
  );
  assert.match((await get('/healthz?verbose&exclude=x')).body, /no matches for "x"\nhealthz check passed\n$/);
  const page = (await get('/metrics/slis')).body;
  assert.match(page, /^kubernetes_healthcheck\{name="ping",type="healthz"\} 1$/m);
  assert.match(page, /^kubernetes_healthchecks_total\{name="ping",status="success",type="healthz"\} 3$/m);
  assert.match(page, /^process_start_time_seconds 1\.794715009e\+09$/m);
  assert.equal((await get('/metrics/slis', {}, 'DELETE')).body, 'metrics reset\n');
  assert.doesNotMatch((await get('/metrics/slis')).body, /healthcheck/);
});

test('/metrics is text with upstream’s headers, and can be filtered by name', async (t) => {
  const { get, metrics } = await setup(t);
  metrics.lastSync.set(started, { ip_family: 'IPv4' });
  const page = await get('/metrics');
  assert.equal(
    page.headers['content-type'],
    'text/plain; version=0.0.4; charset=utf-8; escaping=underscores',
  );
  assert.equal(page.headers['process-start-time-unix'], String(started));
  assert.equal(page.headers['content-encoding'], undefined);
  assert.match(
    page.body,
    /^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{ip_family="IPv4"\} 1\.794715009e\+09$/m,
  );
  const one = 'kubeproxy_sync_proxy_rules_service_changes_total';
  const filtered = (await get(`/metrics?name[]=${one}&name%5B%5D=nosuch`)).body;
  assert.deepEqual(filtered.match(/^# TYPE .*$/gm), [`# TYPE ${one} counter`]);
});

test('/metrics uses the compression and format that the client asks for', async (t) => {
  const { get } = await setup(t);
  const plain = (await get('/metrics')).body;
  const encodings: [accept: string, used: string | undefined][] = [
    ['gzip', 'gzip'],
    ['gzip, zstd', 'gzip'],
    ['gzip;q=0.5, zstd', 'zstd'],
    ['identity', undefined],
    ['*', undefined],
    ['gzip;q=0', undefined],
    ['br', undefined],
  ];
  for (const [accept, used] of encodings) {
    const { headers, bytes } = await get('/metrics', { 'Accept-Encoding': accept });
    assert.equal(headers['content-encoding'], used, accept);
    const decode = used === 'gzip' ? gunzipSync : used === 'zstd' ? zstdDecompressSync : (raw: Buffer) => raw;
    assert.equal(decode(bytes).toString(), plain, accept);
  }
  const protobuf =
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited';
  const binary = await get('/metrics', { Accept: `${protobuf};q=0.8, text/plain;q=0.5` });
  assert.equal(binary.headers['content-type'], `${protobuf.replaceAll(';', '; ')}; escaping=underscores`);
  assert.ok(binary.body.includes('kubeproxy_sync_proxy_rules_service_changes_total'));
  assert.equal(binary.bytes[1], 0x0a, 'a length, then the name of the first family');
  const utf8 = await get('/metrics', {
    Accept: 'application/openmetrics-text;q=0.9, text/plain;escaping=allow-utf-8',
  });
  assert.equal(
    utf8.headers['content-type'],
    'text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8',
  );
});

test('clients that wait for their turn share one page of /metrics', async (t) => {
  const clock = new FakeClock();
  const capacity = new Capacity(clock);
  const registry = new Registry({ clock, onCollectError: assert.fail });
  let made = 0;
  registry.scraped('gauge', { name: 'reads', help: 'Reads' }).readFrom(() => [{ labels: {}, value: ++made }]);
  const handler = createRouter({ '/metrics': metricsHandler(registry, 0, clock) }, silentLogger);
  const { server, port } = await serveHttp(t, handler, capacity);
  // No time is left for HTTP.
  capacity.turns.charge(100);
  const waiting: Promise<Answer>[] = [];
  for (let i = 0; i < 20; i++) waiting.push(client(port)('/metrics'));
  const countConnections = promisify(server.getConnections.bind(server));
  await eventually('the connections', async () => (await countConnections()) === waiting.length);
  let answered = 0;
  for (const answer of waiting) void answer.then(() => answered++);
  await eventually('the answers', async () => {
    await clock.advance(50);
    return answered === waiting.length;
  });
  // A request may have come after the first page was begun.
  assert.ok(made < waiting.length / 2, `${made} pages were made`);
});

test('two scrapers get their pages within 10 seconds although a collector hangs', async () => {
  const clock = new FakeClock();
  const registry = new Registry({ clock, onCollectError: () => {} });
  registry.scraped('gauge', { name: 'hangs', help: 'Hangs' }).readFrom(() => new Promise(() => {}));
  const pages = new SharedPages(async () => Buffer.from(String(await registry.gather())), clock);
  const answered: number[] = [];
  for (let i = 0; i < 2; i++) {
    void Promise.resolve(pages.get('text', clock.monotonic())).then(() => answered.push(clock.monotonic()));
    await clock.advance(10);
  }
  await clock.advance(9_500);
  assert.equal(answered.length, 2);
});

test('/debug/flags/v sets the verbosity and nothing else', async (t) => {
  const { get, levels } = await setup(t);
  const put = await get('/debug/flags/v', {}, 'PUT', '4');
  assert.equal(put.status, 200);
  assert.equal(put.body, 'successfully set klog.logging.verbosity to 4');
  for (const bad of ['', 'x', '-1', '4.5', '2147483648', 'y'.repeat(100_000)]) {
    assert.equal((await get('/debug/flags/v', {}, 'PUT', bad)).status, 400, bad.slice(0, 20));
  }
  const got = await get('/debug/flags/v');
  assert.equal(got.status, 406);
  assert.equal(got.body, 'unsupported http method');
  assert.equal(got.headers['content-type'], 'text/plain');
  assert.deepEqual(levels, [4]);
  for (const path of ['/debug/flags', '/debug/flags/', '/debug/flags/other']) {
    assert.match((await get(path)).headers['content-type'] ?? '', /^text\/html/, path);
  }
});
