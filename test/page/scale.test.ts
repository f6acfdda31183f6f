/** The page with as many Services as a large cluster has. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { apiService } from '../cluster/objects.ts';
import { eventually } from '../eventually.ts';
import { Site } from '../program/started.ts';
import { browserUnavailable, openBrowser } from './browser.ts';
import { ServedPage } from './served-page.ts';

const skip = labUnavailable() ?? browserUnavailable;
if (skip === undefined) enterNamespace(import.meta.url);

const COUNT = 50_000;

describe('the page with 50,000 Services', { skip: skip ?? false, timeout: paced(240_000) }, () => {
  let site: Site;
  let served: ServedPage;
  let browser: Browser;
  let page: Page;

  before(async () => {
    site = await Site.open();
    for (let i = 0; i < COUNT; i++) {
      const clusterIP = `10.${96 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
      site.api.put('services', apiService(`s-${String(i).padStart(5, '0')}`, 80, { clusterIP }));
    }
    await site.start(site.writeConfig());
    [served, browser] = await Promise.all([ServedPage.start(), openBrowser()]);
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(paced(120_000));
    await page.goto(served.url);
    await page.getByText('50,000 service ports', { exact: true }).waitFor();
  });
  after(async () => {
    await browser?.close();
    await served?.stop();
    await site?.close();
  });

  const rows = () => page.locator('.services tbody th a').allTextContents();

  it('draws only the rows that can be seen, also at the end', async () => {
    await page.getByText('shop/s-00000:http/TCP', { exact: true }).last().waitFor();
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await page.getByText('shop/s-49999:http/TCP', { exact: true }).waitFor();
    assert.ok((await rows()).length < 100);
  });

  it('finds one of them', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('s-31337');
    await eventually('one row', async () => String(await rows()) === 'shop/s-31337:http/TCP', {
      withinMs: 60_000,
    });
    await page.getByText('1 of 50,000 service ports').waitFor();
  });

  it('counts what needs attention, and shows the first of them', async () => {
    const attention = page.getByRole('region', { name: 'Needs attention' });
    await attention.getByRole('link', { name: 'All 50,000' }).waitFor();
    assert.equal(await attention.getByRole('listitem').count(), 6);
  });
});
