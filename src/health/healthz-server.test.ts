import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { FakeClock } from '../../test/fake-clock.ts';
import { serveHttp } from '../../test/serve-http.ts';
import type { Problem } from '../model/problem.ts';
import { createProxyMetrics } from '../obs/proxy-metrics.ts';
import { Registry } from '../obs/registry.ts';
import { formatText } from '../obs/text-exposition.ts';
import { formatRFC3339, healthzRoutes } from './healthz-server.ts';
import { Problems } from './problems.ts';
import { ProxyHealth } from './proxy-health.ts';

const seconds = 1000;

async function setup(t: TestContext) {
  const clock = new FakeClock();
  const health = new ProxyHealth(clock, 60 * seconds);
  const problems = new Problems();
  problems.from(() => health.problems());
  const registry = new Registry({ clock, onCollectError: assert.fail });
  const node = { eligible: true };
  const { healthzTotal, livezTotal } = createProxyMetrics(registry, []);
  const routes = healthzRoutes({
    health,
    problems,
    nodeEligible: () => node.eligible,
    clock,
    healthzTotal,
    livezTotal,
  });
  const { url } = await serveHttp(t, (request, response) =>
    routes[request.url === '/livez' ? '/livez' : '/healthz'](request, response),
  );
  const get = async (path: '/healthz' | '/livez') => {
    const response = await fetch(url + path);
    return { status: response.status, headers: response.headers, body: await response.text() };
  };
  return { clock, health, problems, registry, node, get };
}

/** A body with every time replaced, to compare its shape: keys, their order and the other values. */
function shape(body: string): string {
  return body.replace(/"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d*[1-9])?(?:Z|[+-]\d{2}:\d{2})"/g, 'TIME');
}

test('/healthz and /livez answers have the recorded status, headers and fields', async (t) => {
  const { clock, health, get } = await setup(t);
  health.updated('IPv6');
  health.updated('IPv4');
  await clock.advance(1234);
  const vectors = new URL('../../test/vectors/pages/nftables.json', import.meta.url);
  const { pages } = JSON.parse(readFileSync(vectors, 'utf8'));
  for (const path of ['/healthz', '/livez'] as const) {
    const recorded = pages[`10256${path}`];
    const answer = await get(path);
    assert.equal(answer.status, recorded.status);
    for (const header of recorded.headers) {
      const [name, value] = header.split(': ');
      assert.equal(answer.headers.get(name), value);
    }
    assert.equal(shape(answer.body), shape(recorded.body));
    assert.match(shape(recorded.body), /^\{"lastUpdated":TIME,"currentTime":TIME,/);
  }
});

test('before the first sync the answer is 200 and has no status field', async (t) => {
  const { clock, node, get } = await setup(t);
  const now = formatRFC3339(clock.now());
  assert.equal(
    (await get('/healthz')).body,
    `{"lastUpdated":"${now}","currentTime":"${now}","nodeEligible":true,"healthy":true}`,
  );
  node.eligible = false;
  assert.equal(
    (await get('/healthz')).body,
    `{"lastUpdated":"0001-01-01T00:00:00Z","currentTime":"${now}","nodeEligible":false,"healthy":true}`,
  );
});

test('/healthz follows a family that fails and recovers, and a node that is being removed', async (t) => {
  const { clock, health, registry, node, get } = await setup(t);
  const start = clock.now();
  health.updated('IPv4');
  health.updated('IPv6');
  await clock.advance(100 * seconds);
  health.queued('IPv4');
  health.queued('IPv6');
  health.updated('IPv4');
  await clock.advance(59 * seconds);
  assert.equal((await get('/healthz')).status, 200);

  await clock.advance(1 * seconds);
  const sick = await get('/healthz');
  assert.equal(sick.status, 503);
  assert.deepEqual(JSON.parse(sick.body), {
    lastUpdated: formatRFC3339(start + 100 * seconds),
    currentTime: formatRFC3339(start + 160 * seconds),
    nodeEligible: true,
    healthy: false,
    status: {
      IPv4: { lastUpdated: formatRFC3339(start + 100 * seconds), healthy: true },
      IPv6: { lastUpdated: formatRFC3339(start), healthy: false },
    },
    problems: ['IPv6: changes are not written to the kernel'],
  });
  assert.equal((await get('/livez')).status, 503);

  await clock.advance(30 * seconds);
  health.updated('IPv6');
  assert.equal((await get('/healthz')).status, 200);

  node.eligible = false;
  const tainted = await get('/healthz');
  assert.equal(tainted.status, 503);
  assert.match(tainted.body, /"nodeEligible":false,"healthy":true/);
  const alive = await get('/livez');
  assert.equal(alive.status, 200);
  assert.doesNotMatch(alive.body, /nodeEligible/);

  const page = formatText(await registry.gather());
  assert.match(page, /^kubeproxy_proxy_healthz_total\{code="200"\} 2$/m);
  assert.match(page, /^kubeproxy_proxy_healthz_total\{code="503"\} 2$/m);
  assert.match(page, /^kubeproxy_proxy_livez_total\{code="200"\} 1$/m);
  assert.match(page, /^kubeproxy_proxy_livez_total\{code="503"\} 1$/m);
});

test('/healthz tells an outage that syncs do not show; /livez does not, since a restart does not help', async (t) => {
  const { clock, health, problems, get } = await setup(t);
  for (const family of ['IPv4', 'IPv6'] as const) health.updated(family);
  const found: Problem[] = [
    { kind: 'WatchBroken', isOutage: false, text: 'services: connection refused' },
    { kind: 'RulesWrong', family: 'IPv6', since: clock.now(), isOutage: true, text: 'rules are wrong' },
  ];
  problems.from(() => found);
  const now = formatRFC3339(clock.now());
  const { status, body } = await get('/healthz');
  assert.equal(status, 503);
  assert.deepEqual(JSON.parse(body), {
    lastUpdated: now,
    currentTime: now,
    nodeEligible: true,
    healthy: false,
    status: { IPv4: { lastUpdated: now, healthy: true }, IPv6: { lastUpdated: now, healthy: false } },
    problems: ['IPv6: rules are wrong'],
  });
  assert.equal((await get('/livez')).status, 200);
  found.pop();
  const well = await get('/healthz');
  assert.deepEqual([well.status, well.body.includes('problems')], [200, false]);
});
