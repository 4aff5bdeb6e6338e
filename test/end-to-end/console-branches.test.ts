/** Branches and links as a person makes, reads, follows and deletes them, in a real browser against a whole server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { ApiClient } from '../support/api-client.ts';
import { browserMissing, desktop, inspectPage, startBrowser, watched } from '../support/browser.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const email = 'ada@example.com';
const password = 'correct horse';
let server: ServerProcess;
let browser: Browser;
let anyone: ApiClient;
let writer: ApiClient;

describe('branches and links in a browser', { skip: browserMissing }, () => {
  before(async () => {
    server = await startServer({ folder: temporaryFolder(), plans: 'built-in' });
    anyone = new ApiClient(server.url);
    writer = anyone.as((await anyone.signup(email, 'Ada', password)).key);
    await writer.put('harbour', [
      { id: 'noon', text: 'The tide turns at noon.' },
      { id: 'dusk', text: 'Low tide is at dusk.' },
    ]);
    browser = await startBrowser();
  });
  after(async () => {
    anyone.close();
    await browser.close();
  });

  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
  const rowOf = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) });
  const goTo = (page: Page, link: string) =>
    page.getByRole('navigation', { name: 'Console' }).getByRole('link', { name: link }).click();

  async function make(
    page: Page,
    { kind, name, of = 'harbour' }: { kind: string; name: string; of?: string },
  ) {
    await press(page, `Branch or link of ${of}`);
    await page.getByRole('radio', { name: kind }).check();
    await page.getByLabel('Its name', { exact: true }).fill(name);
    await press(page, 'Make it');
  }

  async function found(page: Page, namespace: string, q: string): Promise<(string | null)[]> {
    await goTo(page, 'Namespaces');
    await rowOf(page, namespace).getByRole('rowheader').getByRole('link').first().click();
    // The page lists the newest documents by itself, which are no answer to what is asked next.
    await page.locator('.hit, .empty').first().waitFor();
    await page.locator('.results').evaluate((results) => results.replaceChildren());
    await page.getByLabel('Search for', { exact: true }).fill(q);
    await press(page, 'Search');
    await page.locator('.hit, .empty').first().waitFor();
    return (await page.locator('.hit mark').allTextContents()).map((text) => text.toLowerCase());
  }

  it('are made, listed as what they are, read, and deleted after a name is typed; sources and branches live on', async () => {
    const page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
    const watch = watched(page, server.url);
    await page.goto(`${server.url}/console#/namespaces`);
    await page.getByLabel('E-mail', { exact: true }).fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await press(page, 'Log in');
    await press(page, 'Branch or link of harbour');
    await page.getByRole('radio', { name: 'Link to this version' }).waitFor();
    await inspectPage(page, 'branch-dialog');
    await press(page, 'Make it');
    await page.getByText('is missing').waitFor();
    await press(page, 'Cancel');

    await make(page, { kind: 'Branch', name: 'trial' });
    await rowOf(page, 'trial').getByText('of harbour at version 1').waitFor();
    await make(page, { kind: 'Link Another', name: 'follower' });
    await rowOf(page, 'follower').getByText('whatever is written there').waitFor();
    await make(page, { kind: 'Link to this version', name: 'release' });
    await rowOf(page, 'release').getByText('at version 1').waitFor();
    await inspectPage(page, 'namespaces-branches');
    assert.equal(await rowOf(page, 'release').getByRole('link', { name: 'SQL over release' }).count(), 0);

    // A name that is taken is told where it was typed.
    await make(page, { kind: 'Branch', name: 'trial' });
    await page.getByRole('dialog').getByText('exists already').first().waitFor();
    await inspectPage(page, 'branch-dialog-refused');
    await press(page, 'Cancel');
    assert.deepEqual(watch.refusals.splice(0), ['409 /v1/namespaces/trial/branch']);

    await writer.put('harbour', [{ id: 'night', text: 'A spring tide at night.' }]);
    await writer.put('trial', [{ id: 'own', text: 'Spring comes late.' }]);
    assert.deepEqual(await found(page, 'follower', 'spring tide'), ['spring tide']);
    assert.deepEqual(await found(page, 'release', 'spring'), []);
    assert.deepEqual(await found(page, 'trial', 'spring'), ['spring']);
    await goTo(page, 'Namespaces');
    await rowOf(page, 'follower').getByRole('link', { name: 'harbour' }).click();
    assert.equal(await page.getByLabel('Namespace', { exact: true }).inputValue(), 'harbour');

    await goTo(page, 'Namespaces');
    await press(page, 'Delete follower');
    await page.getByText('Its source, harbour, keeps its documents.').waitFor();
    await press(page, 'Delete');
    await page.getByText('This is not the name.').waitFor();
    await inspectPage(page, 'branch-delete');
    await page.getByLabel('Type follower to confirm').fill('follower');
    await press(page, 'Delete');
    await rowOf(page, 'follower').waitFor({ state: 'detached' });

    await press(page, 'Delete harbour');
    await page.getByText('Branches of it stay.').waitFor();
    await page.getByLabel('Type harbour to confirm').fill('harbour');
    await press(page, 'Delete');
    await rowOf(page, 'harbour').waitFor({ state: 'detached' });
    assert.deepEqual(await found(page, 'trial', 'tide'), ['tide', 'tide']);
    await goTo(page, 'Namespaces');
    await rowOf(page, 'release').getByText('its source, harbour, is gone').waitFor();
    await inspectPage(page, 'namespaces-source-gone');
    await press(page, 'Delete release');
    await page.getByLabel('Type release to confirm').fill('release');
    await press(page, 'Delete');
    await rowOf(page, 'release').waitFor({ state: 'detached' });
    assert.deepEqual([watch.complaints, watch.refusals], [[], []]);
    await page.close();
  });
});
