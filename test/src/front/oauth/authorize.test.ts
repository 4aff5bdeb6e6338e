/** The page on which a person allows a connection, over a memory store: two people with a tenant each, and a client that has a document. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersonId, TenantId } from '../../../../protocol/ids.ts';
import { limits } from '../../../../protocol/limits.ts';
import { systemRandom } from '../../../../src/base/random.ts';
import {
  type AuthorizeComponents,
  continueAuthorize,
  type PageVisit,
  showAuthorize,
} from '../../../../src/front/oauth/authorize.ts';
import { formParameters } from '../../../../src/front/oauth/form-parameters.ts';
import type { Answer } from '../../../../src/front/response.ts';
import { loginTokens } from '../../../../src/identity/login-token.ts';
import { encodePerson } from '../../../../src/identity/person-record.ts';
import type { OauthClient } from '../../../../src/oauth/client-record.ts';
import type { Consent } from '../../../../src/oauth/connections.ts';
import type { MetadataDocuments } from '../../../../src/oauth/metadata-document.ts';
import { MemoryObjectStore } from '../../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../../src/object-store/paths.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { alone } from '../../../support/key-rings.ts';
import { authorizeQuery, hiddenValue, newProof } from '../../../support/oauth-flow.ts';
import { personRecord } from '../../../support/people.ts';

const client: OauthClient = {
  id: 'https://client.example/oauth/client.json',
  name: 'Documented',
  redirectUris: ['https://app.client.example/callback'],
  method: 'none',
  secretDigest: null,
  createdAt: 0,
};
const redirect_uri = 'https://app.client.example/callback';
const ada = { personId: 7 as PersonId, tenantId: 70 as TenantId };
const bob = { personId: 8 as PersonId, tenantId: 80 as TenantId };

async function house() {
  const store = new MemoryObjectStore();
  const clock = new FakeClock();
  for (const { personId, tenantId } of [ada, bob]) {
    const person = personRecord({ id: personId, tenantId, createdAt: 0 });
    await store.putIfAbsent(paths.person(personId), [encodePerson(person)]);
  }
  const consents: Consent[] = [];
  const components: AuthorizeComponents = {
    baseUrl: 'https://search.example',
    clients: {
      objectStore: store,
      clock,
      random: systemRandom,
      documents: { clientOf: async () => client } as unknown as MetadataDocuments,
    },
    connections: {
      async allow(consent) {
        consents.push(consent);
        return { code: 'tbc_code', connectionId: 1 };
      },
    },
    store,
    tenants: {
      get: async (tenantId) => ({ tenantId, name: `tenant ${tenantId}`, status: 'active' }) as never,
    },
    loginTokens: loginTokens(alone(new Uint8Array(32).fill(3)), clock, systemRandom),
    random: systemRandom,
    formKey: new Uint8Array(32).fill(4),
    frame: () => ({ stylesheet: '/s.css', icon: '/i.svg' }),
  };
  /** A browser in which `personId` is who signs in. */
  const browser = async (personId: PersonId) => {
    let cookie: string | undefined;
    const visit = (): PageVisit => ({
      cookie,
      network: 'here',
      signIn: async () => personId,
      signUp: async () => personId,
      allowed: () => {},
    });
    const query = authorizeQuery(client.id, newProof(), { redirect_uri });
    const shown = await showAuthorize(components, query, visit());
    const set = shown.headers.find(([name]) => name === 'set-cookie')?.[1] ?? '';
    cookie = set.split(';')[0];
    const common = { request: query, csrf: hiddenValue(textOf(shown), 'csrf') };
    return {
      shown,
      submit: (fields: Readonly<Record<string, string>>) =>
        continueAuthorize(
          components,
          formParameters(new URLSearchParams({ ...common, ...fields }).toString()),
          visit(),
        ),
    };
  };
  return { components, clock, consents, browser };
}

const textOf = ({ body }: Answer) => ({ text: String(body) });
const signIn = { action: 'sign-in', email: 'a@b.c', password: 'x' };

async function ticketOf(page: Awaited<ReturnType<Awaited<ReturnType<typeof house>>['browser']>>) {
  return hiddenValue(textOf(await page.submit(signIn)), 'ticket');
}

const allowing = (ticket: string, tenantId: TenantId) => ({
  action: 'allow',
  ticket,
  tenant: String(tenantId),
  access: 'write',
  reach: 'some',
  namespaces: 'notes, log-*',
});

test('a client with a document is shown with the place of it, and allowed for what was chosen', async () => {
  const { browser, consents, components } = await house();
  const page = await browser(ada.personId);
  const { text } = textOf(page.shown);

  assert.match(text, /Described at<\/dt><dd>client\.example</);
  assert.match(text, /Sends you to<\/dt><dd>app\.client\.example</);
  const answer = await page.submit(allowing(await ticketOf(page), ada.tenantId));

  assert.equal(answer.status, 303);
  const location = answer.headers.find(([name]) => name === 'location')?.[1] ?? '';
  const sent = new URL(location);
  assert.equal(`${sent.origin}${sent.pathname}`, redirect_uri);
  assert.equal(sent.searchParams.get('code'), 'tbc_code');
  assert.equal(sent.searchParams.get('iss'), components.baseUrl);
  const [consent] = consents;
  assert.equal(consent?.client.id, client.id);
  assert.deepEqual([consent?.scope, consent?.namespaces], ['write', ['notes', 'log-*']]);
  assert.deepEqual([consent?.tenantId, consent?.person.id], [ada.tenantId, ada.personId]);
});

test('nobody allows for another person, in another’s tenant, or with a ticket of another browser', async () => {
  const { browser, consents } = await house();
  const adas = await browser(ada.personId);
  const bobs = await browser(bob.personId);
  const ticket = await ticketOf(adas);

  assert.equal((await bobs.submit(allowing(ticket, ada.tenantId))).status, 401);
  assert.equal((await adas.submit(allowing(ticket, bob.tenantId))).status, 422);
  assert.equal((await bobs.submit(allowing(await ticketOf(bobs), ada.tenantId))).status, 422);

  assert.deepEqual(consents, []);
});

test('a ticket ends after ten minutes, and with a new password', async () => {
  const { browser, consents, clock, components } = await house();
  const page = await browser(ada.personId);
  const late = await ticketOf(page);
  await clock.advance(limits.consentTicketMs + 1);
  assert.equal((await page.submit(allowing(late, ada.tenantId))).status, 401);

  const early = await ticketOf(page);
  const person = {
    ...personRecord({ id: ada.personId, tenantId: ada.tenantId, createdAt: 0 }),
    generation: 2,
  };
  await components.store.delete(paths.person(ada.personId));
  await components.store.putIfAbsent(paths.person(ada.personId), [encodePerson(person)]);

  assert.equal((await page.submit(allowing(early, ada.tenantId))).status, 401);
  assert.deepEqual(consents, []);
});
