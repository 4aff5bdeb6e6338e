/** A real browser for tests of pages: Debian's chromium, watched for what it complains of and whom it calls. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, chromium, type Page } from 'playwright-core';

const executable = process.env.TIDEBASE_TEST_CHROMIUM ?? '/usr/bin/chromium';
/** Screenshots are for people; none are taken unless somebody says where to. */
const screenshotFolder = process.env.TIDEBASE_TEST_SCREENSHOTS ?? '';

/** Why there is no browser, or false: as `skip` of a test. */
export const browserMissing: string | false = existsSync(executable)
  ? false
  : `no browser at ${executable}: apt-get install chromium, or set TIDEBASE_TEST_CHROMIUM`;

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: executable, args: ['--no-sandbox'] });
}

/** Everything is on this machine; two cores that do other things as well may take their time. */
const waitMsMax = 15_000;

/** What a page must not do, collected while it does it. */
export interface PageWatch {
  readonly page: Page;
  /** `404 /v1/keys/1`: answers that were refusals. A test takes out the ones that it means to cause. */
  readonly refusals: string[];
  /** Errors of scripts and of the console, and requests to other hosts. */
  readonly complaints: string[];
}

export function watched(page: Page, url: string): PageWatch {
  const watch: PageWatch = { page, refusals: [], complaints: [] };
  page.setDefaultTimeout(waitMsMax);
  page.on('pageerror', (error) => watch.complaints.push(`script: ${error.stack ?? error.message}`));
  page.on('console', (message) => {
    // The browser's own line about a refusal: the answer itself is among the refusals.
    if (message.text().startsWith('Failed to load resource')) return;
    if (message.type() === 'error' || message.type() === 'warning') {
      watch.complaints.push(`console: ${message.text()}`);
    }
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== 'data:' && origin !== url) watch.complaints.push(`call of ${request.url()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400)
      watch.refusals.push(`${response.status()} ${new URL(response.url()).pathname}`);
  });
  return watch;
}

export const desktop = { width: 1280, height: 860 };
const phone = { width: 360, height: 740 };

/**
 * Looks at the page as it is: no serious fault for assistive technology, on a desk in light and on a phone in dark, and
 * nothing that makes a phone of 360 pixels scroll sideways. Takes its pictures, all four.
 */
export async function inspectPage(page: Page, name: string): Promise<void> {
  await assertAccessible(page, name);
  await picture(page, `${name}-light`);
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture(page, `${name}-dark`);
  await resize(page, phone);
  assert.deepEqual(await page.evaluate(tooWide), [], `${name} scrolls sideways on a phone`);
  await assertAccessible(page, `${name}, on a phone in dark`);
  await picture(page, `${name}-dark-360`);
  await page.emulateMedia({ colorScheme: 'light' });
  await picture(page, `${name}-light-360`);
  await resize(page, desktop);
}

/** And lets be drawn anew what is drawn for a width. */
async function resize(page: Page, size: typeof desktop): Promise<void> {
  await page.setViewportSize(size);
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
}

/** What reaches out of the page; none where it does not scroll. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('*')]
  .filter((one) => one.getBoundingClientRect().right > innerWidth)
  .map((one) => one.outerHTML.slice(0, 120))`;

async function picture(page: Page, name: string): Promise<void> {
  if (screenshotFolder === '') return;
  mkdirSync(screenshotFolder, { recursive: true });
  await page.screenshot({ path: join(screenshotFolder, `${name}.png`), fullPage: true });
}

async function assertAccessible(page: Page, what: string): Promise<void> {
  // Once a document. By the debugger's way, which the page's own policy does not concern.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run(document)')) as AxeResults;
  const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const told = grave.map(
    ({ id, help, nodes }) => `${id}: ${help}\n${nodes.map(({ html }) => `  ${html}`).join('\n')}`,
  );
  assert.equal(told.join('\n'), '', what);
}
