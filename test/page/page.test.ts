/** The page of `kube-proxyctl ui` in a real browser, against a real proxy in a network namespace. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import type { StatusReport } from '../../src/inspect/api.ts';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { printed } from '../ctl/ctl.ts';
import { eventually } from '../eventually.ts';
import { Site, type StartedProxy } from '../program/started.ts';
import { browserUnavailable, openBrowser } from './browser.ts';
import { ServedPage } from './served-page.ts';
import { markup, putShop, putWebEndpoints } from './shop.ts';

const skip = labUnavailable() ?? browserUnavailable;
if (skip === undefined) enterNamespace(import.meta.url);

const webView = '#/service/shop/web';
const explainView = `${webView}?from=node&to=10.96.0.10%3A80%2FTCP`;

describe('the page of kube-proxyctl ui', { skip: skip ?? false, timeout: paced(240_000) }, () => {
  let site: Site;
  let proxy: StartedProxy;
  let served: ServedPage;
  let browser: Browser;
  let page: Page;
  const endpoint = createServer((_request, response) => response.end('echo'));

  before(async () => {
    sh('ip', 'addr', 'add', '192.0.2.1/32', 'dev', 'lo');
    // Only the beginning of a packet's way needs it: its destination is then rewritten.
    sh('ip', 'link', 'add', 'nowhere', 'type', 'bridge');
    sh('ip', 'link', 'set', 'nowhere', 'up');
    sh('ip', 'route', 'add', '10.96.0.0/16', 'dev', 'nowhere', 'src', '192.0.2.1');
    await once(endpoint.listen(8080, '192.0.2.1'), 'listening');
    site = await Site.open();
    putShop(site.api);
    proxy = await site.start(site.writeConfig());
    [served, browser] = await Promise.all([ServedPage.start(), openBrowser()]);
    page = await openPage();
  });
  after(async () => {
    await browser?.close();
    await served?.stop();
    await site?.close();
    endpoint.close();
  });

  async function openPage(colorScheme: 'light' | 'dark' = 'light', width = 1280): Promise<Page> {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    context.setDefaultTimeout(paced(60_000));
    const opened = await context.newPage();
    // Also what the Content-Security-Policy refuses is an error of the console.
    opened.on('pageerror', (error) => assert.fail(error));
    return opened;
  }

  /** Shows a view, and waits until this text is there. */
  async function show(hash: string, text: string, on = page): Promise<void> {
    await on.goto(`${served.url}${hash}`);
    await on.getByText(text).first().waitFor();
  }

  /** The service ports in the table. */
  async function rows(): Promise<string[]> {
    return page.locator('.services tbody th a').allTextContents();
  }

  async function showsRows(...wanted: readonly string[]): Promise<void> {
    await eventually(`rows ${wanted}`, async () => String(await rows()) === String(wanted), {
      withinMs: 60_000,
      everyMs: 50,
    });
  }

  it('shows the verdict of kube-proxyctl status, sources, kernel, and first what needs attention', async () => {
    await show('', 'shop/web:http/TCP');
    const status: StatusReport = JSON.parse(await printed('status -o json', 2));
    assert.equal(status.state, 'degraded');
    assert.equal(await page.locator('.verdict').innerText(), '▲ degraded');
    const banner = await page.locator('.banner').innerText();
    for (const text of [status.nodeName, status.mode, status.version]) assert.ok(banner.includes(text), text);
    const kernel = await page.getByRole('region', { name: 'Kernel' }).innerText();
    assert.match(kernel, /IPv4 192\.0\.2\.1.*Last sync.*(full|partial).*Repairs\s+none/s);
    const sources = await page.getByRole('region', { name: 'Sources' }).innerText();
    assert.match(sources, /endpointslices\s+connected for/);
    assert.match(sources, /File on disk\s+in use/);
    const attention = await page.getByRole('region', { name: 'Needs attention' }).innerText();
    assert.match(attention, /Service shop\/broken: spec\.ports\[0\]\.name/);
    assert.match(attention, /clients are refused 2\s+shop\/lonely:http\/TCP/);
    assert.match(attention, /Dropped by policy.*shop\/far:http\/TCP.*externalTrafficPolicy is Local/s);
    assert.match(attention, /external IP 198\.51\.100\.1:80\/TCP belongs to shop\/cart(-copy)?:http\/TCP/);
  });

  it('finds Services by name, IP, port and the IP of an endpoint, and keeps the filter in its address', async () => {
    await show('', 'shop/web:http/TCP');
    const search = page.getByRole('searchbox');
    await search.fill('lon');
    await showsRows('shop/lonely:http/TCP');
    assert.match(page.url(), /#\/\?search=lon$/);
    await search.fill('10.96.0.14');
    await showsRows('shop/far:http/TCP');
    await search.fill(':30080');
    await showsRows('shop/web:http/TCP');
    await search.fill('10.244.0.8');
    await showsRows('shop/cart:http/TCP');
    await search.fill('');
    await page.getByLabel('State').selectOption('no endpoints');
    await showsRows('shop/lonely:http/TCP', `shop/odd:${markup}/TCP`);
    await page.getByRole('link', { name: 'shop/lonely:http/TCP', exact: true }).click();
    await page.getByRole('heading', { name: 'shop/lonely', exact: true }).waitFor();
    await page.goBack();
    await showsRows('shop/lonely:http/TCP', `shop/odd:${markup}/TCP`);
  });

  it('shows names with markup as text', async () => {
    await show('#/service/shop/odd', `shop/odd:${markup}/TCP`);
    assert.equal(await page.locator('img').count(), 0);
    assert.doesNotMatch(await page.title(), /666/);
  });

  it('shows the way from frontends to endpoints, and an endpoint that goes away', async () => {
    await show(webView, '10.244.1.7:8080');
    const endpoints = page.getByRole('list', { name: 'Endpoints' }).getByRole('listitem');
    await eventually('four endpoints', async () => (await endpoints.count()) === 4, { withinMs: 60_000 });
    const texts = await endpoints.allInnerTexts();
    assert.match(
      texts[0] ?? '',
      /^10\.244\.0\.5:8080\s+50\.0 %\s+web-7d4b9c5f6d-10-244-0-5 in zone za\s+● ready, this node, hints zone za[^\n]*\n+used/,
    );
    assert.match(
      texts[2] ?? '',
      /^10\.244\.1\.7:8080\s+unused\s+web-7d4b9c5f6d-10-244-1-7 in zone zb\s+○ ready, hints zone zb[^\n]*\n+hinted for other zones/,
    );
    assert.match(texts[3] ?? '', /^10\.244\.1\.8:8080\s+unused\s+in zone zb\s+○ not ready/);
    await eventually('four bands', async () => (await page.locator('.lanes path').count()) === 4);
    putWebEndpoints(site.api, ['10.244.0.5']);
    await page.getByText('100.0 %').waitFor();
    await eventually('two endpoints', async () => (await endpoints.count()) === 2, { withinMs: 60_000 });
    const journal = page.getByRole('region', { name: 'Last hour' });
    await journal.getByText('partial sync, 1 service port changed: shop/web').first().waitFor();
    putWebEndpoints(site.api, ['10.244.0.5', '10.244.0.6', '10.244.1.7']);
    await page.getByText('50.0 %').first().waitFor();
  });

  it('shows the share that each endpoint has of the slots of a hash', async () => {
    await show('#/service/shop/hashed', '10.244.0.23:8080');
    const shares = await page.locator('.endpoints .share').allInnerTexts();
    assert.deepEqual(shares.toSorted(), ['33.2 %', '33.4 %', '33.4 %']);
  });

  it('explains a packet in words, with the evidence of the kernel, at a click and at an address', async () => {
    await show(webView, '10.96.0.10:80');
    await page.getByRole('button', { name: '10.96.0.10:80' }).click();
    const explanation = page.getByRole('region', { name: /^Explanation/ });
    await explanation.getByText('Forwarded to one of 2 endpoints of shop/web:http/TCP').waitFor();
    await explanation.getByText('The kernel agrees.').waitFor();
    assert.match(await explanation.locator('pre').innerText(), /frontends 10\.96\.0\.10 \. tcp \. 80/);
    await explanation.getByRole('cell', { name: 'web-7d4b9c5f6d-10-244-0-5' }).waitFor();
    putWebEndpoints(site.api, ['10.244.0.5']);
    await explanation.getByText('Forwarded to 10.244.0.5:8080 of shop/web:http/TCP').waitFor();
    putWebEndpoints(site.api, ['10.244.0.5', '10.244.0.6', '10.244.1.7']);
    await explanation.getByText('Forwarded to one of 2 endpoints of shop/web:http/TCP').waitFor();
    await show('#/service/shop/far', ':30081');
    await page.getByRole('button', { name: ':30081' }).click();
    await page.getByText('Dropped: the sender gets no answer.').waitFor();
    await page.getByLabel('From').fill('192.0.2.300');
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.getByText('source "192.0.2.300" is not an IP address').waitFor();
  });

  it('counts the connections of Services, endpoints and clients while one looks', async () => {
    await show('#/service/shop/echo', '192.0.2.1:8080');
    await page.getByText('0 open').waitFor();
    for (let i = 0; i < 7; i++) await answerTo(80, 'GET', '/', {}, '10.96.0.20');
    await page.getByText('0 open, measured 100.0 % of 7').waitFor();
    const clients = page.getByRole('region', { name: 'Clients' });
    await clients.getByRole('row', { name: /^192\.0\.2\.1 shop\/echo:http\/TCP 0 7 0/ }).waitFor();
    await clients.getByRole('button', { name: 'Explain' }).click();
    await page.getByText('Forwarded to 192.0.2.1:8080 of shop/echo:http/TCP.').waitFor();
    await show('#/?sort=connections', 'Conn/s');
    const first = page.locator('.services tbody tr:not(.space)').first();
    const hasTraffic = async () => {
      await answerTo(80, 'GET', '/', {}, '10.96.0.20');
      return /^shop\/echo:http\/TCP.*● fine\s+[\d.]*[1-9]/s.test(await first.innerText());
    };
    await eventually('the Service with traffic comes first', hasTraffic, { withinMs: 60_000, everyMs: 200 });
    await first.locator('polyline').waitFor();
  });

  it('shows which clients affinity binds to which endpoint, and for how long', async () => {
    await show(webView, 'No client is bound now.');
    // Nobody answers there; the first packet binds the client.
    const socket = connect(80, '10.96.0.10').on('error', () => {});
    try {
      const bound = page.getByRole('region', { name: 'Bound by affinity' });
      const row = /^192\.0\.2\.1 shop\/web:http\/TCP 10\.244\.0\.[56]:8080 \S+ (2h59m|3h)$/;
      await bound.getByRole('row', { name: row }).waitFor();
      await bound.getByText('kube-proxyctl affinity shop/web').waitFor();
    } finally {
      socket.destroy();
    }
  });

  it('copies the command and the JSON of a view', async () => {
    await show(webView, 'shop/web:http/TCP');
    const clipboard = () => page.evaluate('navigator.clipboard.readText()');
    // The last one is that of the whole view.
    await page.getByRole('button', { name: 'Copy command' }).last().click();
    await page.getByText('Command copied').waitFor();
    assert.equal(await clipboard(), 'kube-proxyctl services shop/web');
    await page.getByRole('button', { name: 'Copy JSON' }).last().click();
    await page.getByText('JSON copied').waitFor();
    const { kind, items } = JSON.parse(String(await clipboard()));
    assert.deepEqual([kind, items.length], ['ServiceList', 1]);
  });

  it('can be used with the keyboard alone', async () => {
    await show('', 'shop/web:http/TCP');
    const focused = () => page.evaluate('document.activeElement.textContent');
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('/');
    await page.keyboard.type('cart');
    await showsRows('shop/cart-copy:http/TCP', 'shop/cart:http/TCP');
    await page.keyboard.press('ArrowDown');
    await eventually(
      'the first row has the focus',
      async () => (await focused()) === 'shop/cart-copy:http/TCP',
    );
    await page.keyboard.press('ArrowDown');
    await eventually('the second row has the focus', async () => (await focused()) === 'shop/cart:http/TCP');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'shop/cart', exact: true }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('searchbox').waitFor();
    await page.keyboard.press('t');
    await page.getByRole('heading', { name: 'Last hour' }).waitFor();
  });

  it('shows the timeline of the last hour', async () => {
    await show('#/timeline', 'nftables mode on node node-a');
    await page.locator('.uplot canvas').waitFor();
    const events = await page.locator('.journal tbody tr').allInnerTexts();
    assert.ok(events.some((text) => /◆ Start\s/.test(text)));
    assert.ok(events.some((text) => /Sync\s+\S+\s.*full sync/s.test(text)));
    await page.getByLabel('Events').selectOption('Start');
    await eventually('one event', async () => (await page.locator('.journal tbody tr').count()) === 1);
  });

  it('has no serious or critical accessibility findings, in light and dark, wide and narrow', async () => {
    for (const [scheme, width] of [
      ['light', 1280],
      ['dark', 400],
    ] as const) {
      const other = await openPage(scheme, width);
      for (const [hash, text] of [
        ['', 'shop/web:http/TCP'],
        [explainView, 'The kernel agrees.'],
        ['#/timeline', 'nftables mode on node node-a'],
      ]) {
        await show(hash ?? '', text ?? '', other);
        // Not as a script element, which the page's policy forbids.
        await other.evaluate(axe.source);
        const { violations } = (await other.evaluate('axe.run()')) as axe.AxeResults;
        const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
        const found = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
        assert.deepEqual(found, [], `${scheme} ${hash}`);
        const overflow = await other.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.ok(Number(overflow) <= 0, `${hash} is ${overflow} px wider than the window`);
      }
      await other.context().close();
    }
  });

  it('answers only its own page, only reads, and passes on nothing but the inspection API', async () => {
    const { port, host } = new URL(served.url);
    const own = `http://${host}`;
    const cases: readonly [number, string, Record<string, string>, string?][] = [
      [200, '/', {}],
      [200, '/', { Host: `localhost:${port}` }],
      [200, '/', { Host: `[::1]:${port}` }],
      [200, '/debug/kube-proxy/status', { Origin: own }],
      [200, '/', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }],
      [200, '/debug/kube-proxy/status', {}, 'HEAD'],
      [400, '/debug/kube-proxy/services?nonsense=1', {}],
      [403, '/', { Host: 'evil.example' }],
      [403, '/', { Host: `evil.example:${port}` }],
      [403, '/', { Host: '127.0.0.1:1' }],
      [403, '/', { Host: `127.0.0.1.evil.example:${port}` }],
      [403, '/debug/kube-proxy/status', { Origin: 'http://evil.example' }],
      [403, '/debug/kube-proxy/status', { Origin: 'null' }],
      [403, '/debug/kube-proxy/status', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' }],
      [405, '/debug/kube-proxy/status', {}, 'POST'],
      [404, '/metrics', {}],
      [404, '/debug/kube-proxy/../../metrics', {}],
      [404, '/debug/kube-proxy/%2e%2e/metrics', {}],
      [404, '//127.0.0.1:10249/metrics', {}],
    ];
    for (const [status, path, headers, method = 'GET'] of cases) {
      const answer = await answerTo(Number(port), method, path, headers);
      assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify(headers)}`);
      assert.match(
        String(answer.headers['content-security-policy']),
        /^default-src 'none'; script-src 'self'/,
      );
      assert.equal(answer.headers['x-content-type-options'], 'nosniff');
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
  });

  it('says plainly that the proxy does not answer, and goes on when it does again', async () => {
    await show('', 'shop/web:http/TCP');
    await proxy.kill();
    await page.getByText('No answer from kube-proxy').waitFor();
    const silence = await page.locator('.silence').innerText();
    assert.match(silence, /cannot ask kube-proxy at http:\/\/127\.0\.0\.1:10249: \S/);
    assert.match(silence, /The last answer was at \d\d:\d\d:\d\d, .* ago/);
    assert.ok((await rows()).includes('shop/web:http/TCP'), 'what was known is still there');
    proxy = await site.start(site.path('config.yaml'));
    await page.getByText('No answer from kube-proxy').waitFor({ state: 'detached' });
  });

  it('says that the API server has vanished', async () => {
    await show('', 'shop/web:http/TCP');
    await site.api.close();
    const sources = page.getByRole('region', { name: 'Sources' });
    await sources
      .getByText(/^(▲ )?(connecting|stale) for .*: /)
      .first()
      .waitFor();
    assert.ok((await rows()).includes('shop/web:http/TCP'));
  });

  it('is below 150 kB, compressed', () => {
    const files = ['page.html', 'page.js', 'page.css'].map((name) =>
      readFileSync(resolve(import.meta.dirname, '../../dist', name)),
    );
    assert.ok(files.reduce((sum, file) => sum + gzipSync(file).length, 0) < 150_000);
  });
});

function answerTo(
  port: number,
  method: string,
  path: string,
  headers: Record<string, string>,
  host = '127.0.0.1',
) {
  const {
    promise,
    resolve: settle,
    reject,
  } = Promise.withResolvers<{ status: number; headers: NodeJS.Dict<string | string[]> }>();
  const sent = request({ host, port, method, path, headers, agent: false }, (response) => {
    response
      .resume()
      .on('end', () => settle({ status: response.statusCode ?? 0, headers: response.headers }));
  });
  sent.on('error', reject).end();
  return promise;
}
