/** The button of the page that follows real packets, in a real browser, with real connections in a network namespace. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { enterNamespace, labUnavailable, run as sh } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { eventually } from '../eventually.ts';
import { Site } from '../program/started.ts';
import { chain, isTracing, withFirewall } from '../trace/trace-lab.ts';
import { browserUnavailable, openBrowser } from './browser.ts';
import { ServedPage } from './served-page.ts';
import { putShop } from './shop.ts';

const skip = labUnavailable() ?? browserUnavailable;
if (skip === undefined) enterNamespace(import.meta.url);

const echo = '10.96.0.20';
const explainEcho = `#/service/shop/echo?from=node&to=${echo}%3A80%2FTCP`;
const patience = { withinMs: 60_000, everyMs: 100 };
const withoutNetAdmin = ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin', '--'];

describe('following packets on the page', { skip: skip ?? false, timeout: paced(240_000) }, () => {
  let site: Site;
  let served: ServedPage;
  let browser: Browser;
  let page: Page;
  const endpoint = createServer((socket) => socket.on('error', () => undefined).end('echo'));

  before(async () => {
    sh('ip', 'addr', 'add', '192.0.2.1/32', 'dev', 'lo');
    // Only the beginning of a packet's way needs it: its destination is then rewritten.
    sh('ip', 'link', 'add', 'nowhere', 'type', 'bridge');
    sh('ip', 'link', 'set', 'nowhere', 'up');
    sh('ip', 'route', 'add', '10.96.0.0/16', 'dev', 'nowhere', 'src', '192.0.2.1');
    await once(endpoint.listen(8080, '192.0.2.1'), 'listening');
    site = await Site.open();
    putShop(site.api);
    await site.start(site.writeConfig());
    [served, browser] = await Promise.all([ServedPage.start(), openBrowser()]);
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(paced(60_000));
    page.on('pageerror', (error) => assert.fail(error));
  });
  after(async () => {
    await browser?.close();
    await served?.stop();
    await site?.close();
    endpoint.close();
  });

  const packets = () => page.getByRole('region', { name: 'Real packets of shop/' });
  const follow = () => packets().getByRole('button', { name: 'Follow packets for 10 s' });

  /** Follows packets, unless the page does that already. */
  async function startFollowing(): Promise<void> {
    if (await follow().isVisible()) await follow().click();
  }

  /** Follows packets of shop/echo, and makes connections to it until the page shows this. */
  async function followEcho(text: RegExp): Promise<void> {
    await page.goto(`${served.url}${explainEcho}`);
    const story = packets().getByText(text);
    const isShown = async () => {
      if ((await story.count()) > 0) return true;
      await startFollowing();
      await connectOnce(echo);
      return false;
    };
    await eventually(`a story ${text}`, isShown, patience);
    assert.ok(!isTracing(), 'the table is gone');
    await follow().waitFor();
  }

  it('names the rule of another program that drops the packets', async () => {
    await withFirewall(chain('output', 'tcp dport 8080 drop comment "no echo"'), () =>
      followEcho(/Dropped by table inet firewall, chain output, rule handle \d+ \("no echo"\)/),
    );
    assert.match(
      await packets().innerText(),
      /sent by the node itself.*shop\/echo:http\/TCP at 10\.96\.0\.20:80/s,
    );
    await packets()
      .getByText(/^Followed \d connections? in \d+m?s/)
      .waitFor();
  });

  it('tells that packets were delivered and answered', async () => {
    await followEcho(/Delivered to a process of this node at 192\.0\.2\.1:8080, which answered/);
    await packets().getByText('kube-proxyctl trace shop/echo:http/TCP').waitFor();
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    assert.deepEqual(
      serious.map(({ id }) => id),
      [],
    );
  });

  it('says that no packet came', async () => {
    await page.goto(`${served.url}#/service/shop/cart?from=node&to=10.96.0.11%3A80%2FTCP`);
    await follow().click();
    await packets().getByText('Waiting for new connections to shop/cart:http/TCP…').waitFor();
    await packets()
      .getByText(/^No first packet of a connection of shop\/cart:http\/TCP came to this node in \d+s\.$/)
      .waitFor();
  });

  it('ends the trace when somebody cancels it or leaves the view', async () => {
    await page.goto(`${served.url}${explainEcho}`);
    const isStarted = async () => {
      await startFollowing();
      return isTracing();
    };
    await eventually('a trace', isStarted, patience);
    // A trace also ends by itself: only a request that the browser gives up shows the difference.
    const givenUp = () => page.waitForEvent('requestfailed', (request) => request.url().includes('/trace?'));
    await Promise.all([givenUp(), packets().getByRole('button', { name: 'Cancel' }).click()]);
    await eventually('no trace', () => !isTracing(), patience);
    await eventually('another trace', isStarted, patience);
    await Promise.all([givenUp(), page.goto(`${served.url}#/timeline`)]);
    await eventually('no trace after leaving', () => !isTracing(), patience);
  });

  it('offers no button, but the command, where packets cannot be followed', async () => {
    const weak = await ServedPage.startThrough(withoutNetAdmin);
    try {
      await page.goto(`${weak.url}${explainEcho}`);
      await packets()
        .getByText('They cannot be followed from here: the server of this page has no')
        .waitFor();
      assert.equal(await follow().count(), 0);
      await packets().getByText('kube-proxyctl trace shop/echo:http/TCP').waitFor();
    } finally {
      await weak.stop();
    }
  });
});

/** Makes one connection, which may fail. */
function connectOnce(host: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect({ host, port: 80, timeout: 300 });
  socket
    .on('timeout', () => socket.destroy())
    .on('error', () => undefined)
    .on('close', () => resolve())
    .resume();
  return promise;
}
