/** The pages as a person uses them, in a real browser against a whole server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { ApiClient } from '../support/api-client.ts';
import {
  browserMissing,
  desktop,
  inspectPage,
  type PageWatch,
  startBrowser,
  watched,
} from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { lettersOnceThere } from '../support/outbox.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** Where a page made markup of data, its title would change. */
const hostile = `<img src=x onerror="document.title='harmed'">`;
const email = 'ada@example.com';
let password = 'correct horse';

const folder = temporaryFolder();
let server: ServerProcess;
let browser: Browser;
let api: ApiClient;

before(async () => {
  server = await startServer({ folder, plans: 'built-in' });
  api = new ApiClient(server.url);
  if (browserMissing === false) browser = await startBrowser();
});

after(async () => {
  api.close();
  if (browserMissing === false) await browser.close();
});

/** A window of a person's own: nothing is kept from other ones. */
async function open(path: string): Promise<PageWatch> {
  const page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
  const watch = watched(page, server.url);
  await page.goto(server.url + path);
  return watch;
}

/** Nothing was complained of, and nothing refused but what was meant to be; the window is closed. */
async function close({ page, complaints, refusals }: PageWatch): Promise<void> {
  assert.doesNotMatch(await page.title(), /harmed/);
  assert.deepEqual(complaints, []);
  assert.deepEqual(refusals, []);
  await page.close();
}

/** The page may have shown a refusal before the browser has told of it. */
async function refusedWith({ refusals }: PageWatch, ...expected: readonly string[]): Promise<void> {
  await eventually(() => refusals.length >= expected.length, `${expected.join()} is refused`);
  assert.deepEqual(refusals.splice(0), expected);
}

/** That something has the focus, as soon as the page has come to it. */
async function focusIs(page: Page, property: string, value: string, why = property): Promise<void> {
  const focused = () => page.evaluate(`document.activeElement.${property}`);
  await eventually(async () => (await focused()) === value, `${property} is ${value}: ${why}`);
}

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
const fill = (page: Page, label: string, value: string) =>
  page.getByLabel(label, { exact: true }).fill(value);

/** By the menu, as a person goes; the heading has the focus then. */
async function goTo(page: Page, link: string, title = link): Promise<void> {
  await page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: link }).click();
  await heading(page, title);
  await focusIs(page, 'tagName', 'H1', `the focus after ${link}`);
  await settled(page);
}

/** Everything that was asked for is there. */
async function settled(page: Page): Promise<void> {
  const loading = page.locator('[aria-busy]');
  while ((await loading.count()) > 0) await loading.first().waitFor({ state: 'detached' });
}

/** The path of a mail's link, once there are so many mails of its kind. */
async function mailedLink(kind: 'verify' | 'reset', count: number): Promise<string> {
  const letters = await lettersOnceThere(folder, (letter) => letter.kind === kind, count);
  return letters.at(-1)?.link.slice(server.url.length) ?? '';
}

async function logIn(page: Page, withPassword: string): Promise<void> {
  await heading(page, 'Log in');
  await fill(page, 'E-mail', email);
  await fill(page, 'Password', withPassword);
  await press(page, 'Log in');
}

describe('the pages in a browser', { skip: browserMissing }, () => {
  let key = '';

  it('lead from the sign-up to the first documents', async () => {
    const watch = await open('/');
    const { page } = watch;
    await heading(page, 'Search everything');
    await inspectPage(page, 'welcome');
    await page.keyboard.press('Tab');
    await focusIs(page, 'textContent', 'Skip to content');
    await page.keyboard.press('Enter');
    await focusIs(page, 'id', 'main');
    assert.equal(page.url(), `${server.url}/`);

    await press(page, 'Sign up');
    await page.getByText('must be an e-mail address').waitFor();
    assert.equal(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid'), 'true');
    await focusIs(page, 'name', 'name', 'the first wrong field has the focus');
    await refusedWith(watch, '422 /v1/signup');
    await inspectPage(page, 'welcome-problems');

    await fill(page, 'Name', hostile);
    await fill(page, 'E-mail', email);
    await fill(page, 'Password', password);
    await press(page, 'Sign up');
    await page.getByRole('heading', { name: 'Your first API key' }).waitFor();
    await press(page, 'Send the link again');
    await page.getByText('mails are files: open the link in the newest file').first().waitFor();
    await page
      .getByText("A new link is in the newest file in the folder outbox of the server's data")
      .waitFor();
    await press(page, 'Send the link again');
    await page.getByRole('alert').waitFor();
    await refusedWith(watch, '429 /v1/email/verify/resend');
    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    await inspectPage(page, 'overview-new');

    await press(page, 'Write three example documents');
    await heading(page, 'Search');
    await page.locator('.hit').first().waitFor();
    assert.deepEqual(await page.locator('mark').allTextContents(), ['tide', 'tide', 'tide']);
    await close(watch);
  });

  it('verify an address by the mailed link, once, and at a click', async () => {
    const earlier = await loggedIn();
    await earlier.page.getByRole('region', { name: 'E-mail not verified' }).waitFor();
    const link = await mailedLink('verify', 2);
    const watch = await open(link);
    const { page } = watch;
    await heading(page, 'Confirm your e-mail address');
    assert.equal(page.url(), `${server.url}/verify`, 'the address does not keep the token');
    await inspectPage(page, 'verify');
    await press(page, 'Confirm');
    await page.getByText('Your address is confirmed:').waitFor();
    await inspectPage(page, 'verify-done');
    await close(watch);

    const again = await open(link);
    await press(again.page, 'Confirm');
    await again.page.getByRole('alert').waitFor();
    await refusedWith(again, '400 /v1/email/verify');
    await inspectPage(again.page, 'verify-used');
    await again.page.goto(`${server.url}/verify`);
    await again.page.getByText('open it from there again').waitFor();
    await close(again);

    await earlier.page.reload();
    await heading(earlier.page, 'Overview');
    assert.equal(await earlier.page.getByRole('region', { name: 'E-mail not verified' }).count(), 0);
    await close(earlier);
  });

  it('make keys with limits, which programs write with', async () => {
    const watch = await open('/console');
    const { page } = watch;
    await heading(page, 'Log in');
    await inspectPage(page, 'login');
    await logIn(page, 'wrong horse');
    await page.getByRole('alert').waitFor();
    await refusedWith(watch, '401 /v1/login');
    await logIn(page, password);
    await heading(page, 'Overview');
    await goTo(page, 'API keys');

    await fill(page, 'Name', hostile);
    await fill(page, 'Namespaces', 'sea-*, No Such');
    await press(page, 'Make the key');
    await page.getByText('namespaces[1]').waitFor();
    await refusedWith(watch, '422 /v1/keys');
    await fill(page, 'Namespaces', 'sea-*');
    await fill(page, 'Queries a month', 'many');
    await press(page, 'Make the key');
    await page.getByText('must be a whole number').waitFor();
    await fill(page, 'Queries a month', '1000');
    await press(page, 'Make the key');
    await page.getByRole('heading', { name: 'New key' }).first().waitFor();
    key = (await page.locator('.copyable-text').textContent()) ?? '';
    assert.match(key, /^tb_\w{36}$/);
    await page.getByRole('rowheader', { name: hostile }).waitFor();
    await inspectPage(page, 'keys');

    const writer = api.as(key);
    await writer.put('sea-marks', [
      {
        id: hostile,
        text: `Here is ${hostile}\nand a beacon`,
        meta: { note: hostile, depth: 435090932899640449n.toString() },
      },
    ]);
    await writer.request('POST', '/v1/namespaces/sea-marks/docs', {
      body: `{"docs": [${markDocuments()}]}`,
    });
    await goTo(page, 'Namespaces');
    await inspectPage(page, 'namespaces');
    await close(watch);
  });

  it('find documents, and show them as text whatever is in them', async () => {
    const watch = await loggedIn();
    const { page } = watch;
    await goTo(page, 'Search');
    await fill(page, 'Namespace', 'sea-marks');
    await fill(page, 'Search for', '<IMG SRC=X');
    await press(page, 'Search');
    await page.locator('mark').first().waitFor();
    assert.deepEqual(await page.locator('mark').allTextContents(), ['<img src=x']);
    await page.getByText('Whole document').click();
    await page.getByRole('region', { name: 'Text' }).waitFor();
    assert.equal(await page.locator('img').count(), 0);
    await inspectPage(page, 'search-hostile');

    await page.getByRole('radio', { name: 'Regex' }).check();
    await fill(page, 'Search for', 'mark [0-9]*5 ');
    await fill(page, 'Filter', '{"depth": 435090932899640005}');
    await press(page, 'Search');
    await page.getByText('435090932899640005').first().waitFor();
    assert.equal(await page.locator('.hit').count(), 1, 'a filter keeps all digits of a number');
    await fill(page, 'Filter', '{"depth": {"about": 3}}');
    await press(page, 'Search');
    await page.locator('.problem:not(:empty)').first().waitFor();
    await refusedWith(watch, '422 /v1/namespaces/sea-marks/search');
    await fill(page, 'Filter', '{"depth":');
    await press(page, 'Search');
    await page.getByText('is not JSON').waitFor();

    await fill(page, 'Filter', '');
    await page.getByRole('radio', { name: 'Text' }).check();
    await fill(page, 'Search for', 'mark');
    await press(page, 'Search');
    await page.locator('.hit').nth(19).waitFor();
    await inspectPage(page, 'search');
    await press(page, 'Show more');
    await page.locator('.hit').nth(39).waitFor();
    await focusIs(page, 'tagName', 'SUMMARY', 'the first that was added');
    await close(watch);
  });

  it('can neither parse markup nor call others, even where somebody tried', async () => {
    const { page } = await open('/');
    await heading(page, 'Search everything');

    await assert.rejects(page.evaluate("document.body.innerHTML = '<b>bold</b>'"), /TrustedHTML/);
    assert.equal(await page.locator('b').count(), 0);
    const refused = page.waitForEvent('requestfailed');
    await page.evaluate(
      "document.body.append(Object.assign(new Image(), { src: 'https://example.com/x.png' }))",
    );
    assert.equal((await refused).failure()?.errorText, 'csp');
    await page.close();
  });

  it('answer SQL with a table and a chart', async () => {
    const watch = await loggedIn();
    const { page } = watch;
    await goTo(page, 'SQL');
    await fill(page, 'Namespace', 'sea-marks');
    await press(page, 'SHOW COLUMNS');
    await page.getByRole('rowheader', { name: 'depth' }).waitFor();
    await fill(
      page,
      'Statement',
      'SELECT kind, COUNT(*) AS marks FROM docs WHERE kind IS NOT NULL GROUP BY kind ORDER BY marks DESC',
    );
    await page.getByLabel('Statement').press('Control+Enter');
    await page.getByRole('img', { name: /^marks by kind, 3 values/ }).waitFor();
    await page.getByRole('rowheader', { name: 'beacon' }).waitFor();
    await inspectPage(page, 'sql-bars');

    await fill(
      page,
      'Statement',
      'SELECT year, AVG(height) AS height FROM docs WHERE year IS NOT NULL GROUP BY year ORDER BY year',
    );
    await press(page, 'Run');
    await page.getByRole('img', { name: /^height by year/ }).waitFor();
    await inspectPage(page, 'sql-line');

    await fill(page, 'Statement', 'SELECT depth FROM docs WHERE year = 2001 ORDER BY depth LIMIT 1');
    await press(page, 'Run');
    await page.getByText('435090932899640001').waitFor();
    await fill(page, 'Statement', 'SELECT nothing FROM nowhere');
    await press(page, 'Run');
    await page.locator('.problem:not(:empty), [role=alert]').first().waitFor();
    await refusedWith(watch, '422 /v1/namespaces/sea-marks/sql');
    assert.equal(await page.getByRole('table').count(), 0, 'the answer of before is not taken for this one');
    await inspectPage(page, 'sql-problem');
    await close(watch);
  });

  it('tell what was used, and of what', async () => {
    const watch = await loggedIn();
    const { page } = watch;
    await inspectPage(page, 'overview');
    await goTo(page, 'Usage');
    await page.getByRole('img', { name: /^Queries by day/ }).waitFor();
    await inspectPage(page, 'usage');
    await page.getByRole('radio', { name: 'Bytes written' }).check();
    await page.getByRole('img', { name: /^Bytes written by day/ }).waitFor();
    await goTo(page, 'Billing');
    await page.getByRole('heading', { name: 'Bill so far' }).waitFor();
    await page.getByText('Paid plans are not set up on this server.').waitFor();
    await inspectPage(page, 'billing-not-set-up');
    await close(watch);
  });

  it('act for one tenant or another', async () => {
    const watch = await loggedIn();
    const { page } = watch;
    await goTo(page, 'Account');
    await fill(page, 'Name of a new tenant', `${hostile} 2`);
    await press(page, 'Make the tenant');
    await page.getByRole('rowheader', { name: `${hostile} 2` }).waitFor();
    await inspectPage(page, 'account');
    await page.getByLabel('Tenant', { exact: true }).selectOption(`${hostile} 2`);
    await page.getByRole('heading', { name: 'First steps' }).waitFor();
    await focusIs(page, 'tagName', 'SELECT', 'the choice keeps the focus');
    await goTo(page, 'API keys');
    await page.getByText('No keys').waitFor();

    await goTo(page, 'Account');
    await page.getByRole('button', { name: `Delete ${hostile} 2` }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('This is not the name').waitFor();
    await page.getByLabel('to confirm').fill(`${hostile} 2`);
    await inspectPage(page, 'account-question');
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('rowheader', { name: `${hostile} 2` }).waitFor({ state: 'detached' });
    assert.equal(await page.locator('p.tenant').textContent(), hostile, 'back to the own one');

    await page.evaluate("sessionStorage.setItem('tidebase.tenant', '1')");
    await page.reload();
    await heading(page, 'Account');
    await refusedWith(watch, '404 /v1/me');
    await close(watch);
  });

  it('change the limits of a key, and revoke it', async () => {
    const watch = await loggedIn();
    const { page } = watch;
    await goTo(page, 'API keys');
    await page.getByRole('button', { name: `Limits of ${hostile}` }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Queries a month').fill('2000');
    await inspectPage(page, 'key-limits');
    await dialog.getByRole('button', { name: 'Save the limits' }).click();
    await page.getByText('of 2,000').waitFor();

    await page.getByRole('button', { name: `Revoke ${hostile}` }).click();
    await inspectPage(page, 'key-question');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('rowheader', { name: hostile }).waitFor({ state: 'detached' });
    await focusIs(page, 'tagName', 'H1', 'the button that asked is gone');
    await api.as(key).refused({ status: 401, code: 'unauthorized' }, 'GET', '/v1/namespaces');
    await close(watch);
  });

  it('set a new password by the mailed link, which ends every login', async () => {
    const earlier = await loggedIn();
    const watch = await open('/#/forgot');
    const { page } = watch;
    await heading(page, 'Forgot your password?');
    await inspectPage(page, 'forgot');
    await fill(page, 'E-mail', email);
    await press(page, 'Send the link');
    await page.getByText('the link is in the newest file').waitFor();

    await page.goto(server.url + (await mailedLink('reset', 1)));
    await heading(page, 'Set a new password');
    assert.equal(page.url(), `${server.url}/reset`);
    await fill(page, 'New password', 'short');
    await press(page, 'Set the password');
    await page.getByText('must have 8').waitFor();
    await refusedWith(watch, '422 /v1/password/reset');
    await inspectPage(page, 'reset');
    password = 'a better horse';
    await fill(page, 'New password', password);
    await press(page, 'Set the password');
    await page.getByText('every earlier login has ended').waitFor();
    await page.getByRole('link', { name: 'Log in' }).last().click();
    await logIn(page, password);
    await heading(page, 'Overview');
    await close(watch);

    await earlier.page.getByRole('link', { name: 'Usage' }).click();
    await earlier.page.getByText('Your login has ended').waitFor();
    await eventually(() => earlier.refusals.length > 0, 'it is refused');
    // As many as the page had asked for.
    assert.match(earlier.refusals.join(), /^401 [^ ]+(?:,401 [^ ]+)*$/);
    assert.deepEqual(earlier.complaints, []);
    await earlier.page.close();
  });

  it('forget who was there at the end', async () => {
    const watch = await loggedIn();
    const { page } = watch;
    await press(page, 'Log out');
    await heading(page, 'Log in');
    assert.equal(await page.evaluate('sessionStorage.length'), 0);
    await page.goto(`${server.url}/console#/keys`);
    await heading(page, 'Log in');
    await close(watch);
  });
});

async function loggedIn(): Promise<PageWatch> {
  const watch = await open('/console');
  await logIn(watch.page, password);
  await heading(watch.page, 'Overview');
  await settled(watch.page);
  return watch;
}

/** Numbers of more digits than a double has, written as they are. */
function markDocuments(): string {
  const kinds = ['beacon', 'buoy', 'lighthouse'];
  return Array.from({ length: 60 }, (_, index) => {
    const meta = `"kind": "${kinds[index % 7 === 0 ? 2 : index % 2]}", "year": ${2000 + (index % 25)}, "height": ${10 + (index % 9) * 1.5}, "depth": 4350909328996400${String(index).padStart(2, '0')}`;
    return `{"id": "marks/${index}", "text": "mark ${index} of the channel", "meta": {${meta}}}`;
  }).join(', ');
}
