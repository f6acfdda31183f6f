import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { healthzRoutes } from '../health/healthz-server.ts';
import { Problems } from '../health/problems.ts';
import { ProxyHealth } from '../health/proxy-health.ts';
import { Capacity } from '../http/capacity.ts';
import { createRouter } from '../http/router.ts';
import { systemClock } from '../lib/clock.ts';
import { families } from '../model/ip.ts';
import { silentLogger } from '../obs/log.ts';
import { ignoredMetric } from '../obs/metrics.ts';
import { serveWithRetry } from './listen.ts';

const vectors = new URL('../../test/vectors/pages/iptables.json', import.meta.url);
const pages: Record<string, { status: number; headers: string[]; body: string }> = JSON.parse(
  readFileSync(vectors, 'utf8'),
).pages;

test('the health server answers every recorded path and method like upstream', async (t) => {
  const health = new ProxyHealth(systemClock, 60_000);
  for (const family of families) health.updated(family);
  const routes = healthzRoutes({
    health,
    problems: new Problems(),
    nodeEligible: () => true,
    clock: systemClock,
    healthzTotal: ignoredMetric,
    livezTotal: ignoredMetric,
  });
  const { promise: port, resolve } = Promise.withResolvers<number>();
  const serving = serveWithRetry({
    name: 'proxy healthz',
    address: '127.0.0.1:0',
    hardFail: true,
    onHardFail: assert.fail,
    handler: createRouter(routes, silentLogger),
    capacity: new Capacity(systemClock),
    clock: systemClock,
    logger: silentLogger,
    onListening: resolve,
  });
  t.after(() => serving.close());
  const recorded = Object.entries(pages).filter(([key]) => key.startsWith('10256/'));
  assert.equal(recorded.length, 4);
  for (const [key, page] of recorded) {
    for (const method of ['GET', 'POST']) {
      const response = await fetch(`http://127.0.0.1:${await port}${key.slice('10256'.length)}`, { method });
      assert.equal(response.status, page.status, key);
      for (const header of page.headers) {
        const [name = '', value] = header.split(': ');
        assert.equal(response.headers.get(name), value, key);
      }
      const body = await response.text();
      if (page.status === 404) assert.equal(body, page.body);
      else assert.deepEqual(Object.keys(JSON.parse(body)), Object.keys(JSON.parse(page.body)), key);
    }
  }
});
