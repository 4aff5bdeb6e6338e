/**
 * Every operation × credential × target, asked of a server. What each has to answer is `support/authorisation-table.ts`; an operation
 * that has no row there does not compile. Here are the requests: right ones, so that nothing but who asks and for what decides.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { NewKey, SignupAnswer, Tenant } from '../../protocol/account.ts';
import { type OperationName, operationList, operations } from '../../protocol/operations.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { updatePerson } from '../../src/identity/person-record.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { type ApiAnswer, ApiClient, type ErrorBody, type RequestOptions } from '../support/api-client.ts';
import {
  type Credential,
  credentials,
  expectedOf,
  isSuccess,
  rows,
  type Target,
  targetsOf,
} from '../support/authorisation-table.ts';
import { type EmbeddingDouble, startEmbeddingDouble } from '../support/embedding-doubles.ts';
import { oauthTokens } from '../support/oauth-credentials.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';
import { setTenantStatus } from '../support/tenant-status.ts';

const providerKeys = {
  openai: 'sk-proj-for-a-test-of-authorisation',
  cohere: 'co.for-a-test',
  mistral: 'm-for-a-test',
};
const password = 'correct horse';

describe('who may do what', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  const doubles: EmbeddingDouble[] = [];
  let server: ServerProcess;
  let anyone: ApiClient;
  /** The tenant that most credentials are of, and another one. */
  let own: { readonly made: SignupAnswer; readonly key: ApiClient; readonly login: ApiClient };
  let other: { readonly made: SignupAnswer; readonly key: ApiClient; readonly login: ApiClient };
  let standing: { readonly keyId: number; readonly tenantId: number; readonly foreignTenantId: number };
  const clients = new Map<Credential, { readonly client: ApiClient; readonly tenant?: string }>();
  let count = 0;

  before(async () => {
    const env: Record<string, string> = { TIDEBASE_COMMIT_MS: '5' };
    for (const provider of ['openai', 'cohere', 'mistral'] as const) {
      const double = await startEmbeddingDouble(provider, { key: providerKeys[provider] });
      doubles.push(double);
      env[`${provider.toUpperCase()}_BASE_URL`] = double.baseUrl;
    }
    server = await startServer({ folder, env });
    anyone = new ApiClient(server.url);
    const suspended = await person('suspended');
    own = await person('own');
    other = await person('other');
    const member = await person('member');
    await makeStanding();
    await server.stop();
    await setTenantStatus(folder, [suspended.made.tenant_id], 'suspended');
    await makeMember(member.made, own.made);
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);
    own = again(own);
    other = again(other);
    await makeClients(again(suspended), again(member));
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    for (const double of doubles) await double.close();
  });

  async function person(name: string) {
    const email = `${name}@example.com`;
    const made = await anyone.signup(email, name, password);
    return { made, key: anyone.as(made.key), login: anyone.as(await anyone.login(email, password)) };
  }

  /** At the server that was started again. */
  function again<Who extends { readonly key: ApiClient; readonly login: ApiClient }>(who: Who): Who {
    return { ...who, key: anyone.as(who.key.key), login: anyone.as(who.login.key) };
  }

  /** Nothing makes members yet; records may name them. */
  async function makeMember(member: SignupAnswer, owner: SignupAnswer): Promise<void> {
    const objectStore = await FsObjectStore.open(join(folder, 'objects'), systemClock, systemRandom);
    const store = { objectStore, clock: systemClock, random: systemRandom };
    const membership = { tenantId: owner.tenant_id as never, role: 'member' as const };
    await updatePerson(store, member.id, (record) => ({
      ...record,
      tenants: [...record.tenants, membership],
    }));
  }

  /** What is there in every cell, and afterwards still has to be. */
  async function makeStanding(): Promise<void> {
    for (const namespace of ['own-notes', 'zz-outside'])
      await own.key.put(namespace, [{ id: 'a', text: 'tide', meta: { n: 1 } }]);
    await other.key.put('own-foreign', [{ id: 'a', text: 'tide', meta: { n: 1 } }]);
    await own.key.call('PUT', '/v1/embedding-keys/openai', { key: providerKeys.openai });
    await other.key.call('PUT', '/v1/embedding-keys/cohere', { key: providerKeys.cohere });
    const key = await own.key.createKey({ name: 'standing' });
    const tenant = await own.login.call<Tenant>('POST', '/v1/tenants', { name: 'standing' });
    const foreign = await other.login.call<Tenant>('POST', '/v1/tenants', { name: 'foreign' });
    standing = { keyId: key.id, tenantId: tenant.id, foreignTenantId: foreign.id };
  }

  async function makeClients(
    suspended: { readonly key: ApiClient; readonly login: ApiClient },
    member: { readonly login: ApiClient },
  ): Promise<void> {
    const keyed = async (request: object) =>
      anyone.as((await own.key.createKey({ name: 'k', ...request })).key);
    const revoked = await own.key.createKey({ name: 'revoked', scope: 'admin' });
    await own.key.revokeKey(revoked.id);
    const set = (name: Credential, client: ApiClient, tenant?: number) =>
      clients.set(name, tenant === undefined ? { client } : { client, tenant: String(tenant) });
    set('none', anyone);
    set('garbage', anyone.as('tb_garbage'));
    set('revoked key', anyone.as(revoked.key));
    set('read key', await keyed({ scope: 'read' }));
    set('write key', await keyed({ scope: 'write' }));
    set('admin key', await keyed({ scope: 'admin' }));
    set('admin key limited to namespaces', await keyed({ scope: 'admin', namespaces: ['own-*'] }));
    set('admin key with a cap', await keyed({ scope: 'admin', cap_queries: 1_000_000 }));
    set("owner's login", own.login);
    set("member's login", member.login, own.made.tenant_id);
    set('login with a foreign X-Tenant', own.login, other.made.tenant_id);
    set('login with an X-Tenant that is nobody’s', own.login, 123);
    set("suspended tenant's key", suspended.key);
    set("suspended tenant's login", suspended.login);
    const account = { email: 'own@example.com', password };
    const tenantId = own.made.tenant_id;
    const tokens = await oauthTokens(server.url, { account, tenantId, folder, namespaces: 'own-*' });
    for (const [name, token] of Object.entries(tokens)) set(name as Credential, anyone.as(token));
  }

  interface Place {
    /** For `{name}`, `{id}` or `{provider}` of the path. */
    readonly values: Readonly<Record<string, string>>;
    /** Puts back what the cell may have changed. */
    readonly after?: () => Promise<unknown>;
  }

  /** `happens`: the cell will change what it is about, so that has to be its own. */
  async function placeOf(name: OperationName, target: Target, happens: boolean): Promise<Place> {
    const unique = ++count;
    switch (rows[name].on) {
      case 'nothing':
        return { values: {} };
      case 'new namespace': {
        const names: Partial<Record<Target, string>> = { own: 'own-notes', outside: `zz-new-${unique}` };
        return { values: { name: names[target] ?? `own-new-${unique}` } };
      }
      case 'document':
        return {
          values: {
            name: namespaceNames[target] ?? 'own-notes',
            id: target === 'document missing' ? 'b' : 'a',
          },
        };
      case 'namespace':
        return {
          values: {
            name: happens ? await ownNamespace(name, target, unique) : (namespaceNames[target] ?? ''),
          },
        };
      case 'key':
        return { values: { id: String(await keyIdOf(target, happens && name === 'revokeKey')) } };
      case 'tenant':
        return { values: { id: String(await tenantIdOf(target, happens)) } };
      case 'provider': {
        const provider = providers[target] ?? 'openai';
        const isKept = target === 'own' || !happens;
        const path = `/v1/embedding-keys/${provider}`;
        const store = () => own.key.call('PUT', path, { key: providerKeys.openai });
        const forget = () => own.key.call('DELETE', path);
        return { values: { provider }, after: isKept ? (happens ? store : async () => {}) : forget };
      }
    }
  }

  const namespaceNames: Readonly<Partial<Record<Target, string>>> = {
    own: 'own-notes',
    outside: 'zz-outside',
    'outside and missing': 'zz-missing',
    foreign: 'own-foreign',
    missing: 'own-missing',
  };
  const providers: Readonly<Partial<Record<Target, string>>> = {
    own: 'openai',
    foreign: 'cohere',
    missing: 'mistral',
    unknown: 'nobody',
  };

  async function ownNamespace(name: OperationName, target: Target, unique: number): Promise<string> {
    const prefix = target === 'outside' || target === 'outside and missing' ? 'zz' : 'own';
    const fresh = `${prefix}-${unique}`;
    if (name === 'deleteNamespace') await own.key.createNamespace(fresh);
    else if (target === 'foreign') await other.key.createNamespace(fresh);
    else if (target === 'own' || target === 'outside') return namespaceNames[target] ?? '';
    return fresh;
  }

  async function keyIdOf(target: Target, happens: boolean): Promise<number> {
    if (target === 'foreign') return other.made.key_id;
    if (target === 'missing') return 123;
    return happens ? (await own.key.createKey({ name: 'to be revoked' })).id : standing.keyId;
  }

  async function tenantIdOf(target: Target, happens: boolean): Promise<number> {
    if (target === 'foreign') return standing.foreignTenantId;
    if (target === 'missing') return 123;
    if (target === 'default') return own.made.tenant_id;
    if (!happens) return standing.tenantId;
    return (await own.login.call<Tenant>('POST', '/v1/tenants', { name: 'to be deleted' })).id;
  }

  /** A request that is right in itself. */
  function requestOf(
    name: OperationName,
    values: Place['values'],
    unique: number,
  ): RequestOptions & { query?: string } {
    switch (name) {
      case 'signup':
        return { body: { email: `cell-${unique}@example.com`, name: 'Cell', password } };
      case 'login':
        return { body: { email: 'own@example.com', password } };
      case 'verifyEmail':
        return { body: { token: 'no such token' } };
      case 'billingWebhook':
        return { body: {} };
      case 'forgotPassword':
        return { body: { email: `nobody-${unique}@example.com` } };
      case 'resetPassword':
        return { body: { token: 'no such token', password } };
      case 'createKey':
        return { body: { name: 'made in a cell' } };
      case 'replaceKeyLimits':
      case 'search':
      case 'count':
      case 'warm':
        return { body: {} };
      case 'putEmbeddingKey': {
        const key = providerKeys[values.provider as keyof typeof providerKeys] ?? 'any';
        return { body: { key } };
      }
      case 'createTenant':
        return { body: { name: 'made in a cell' } };
      case 'createNamespace':
        return { body: { name: values.name } };
      case 'updateNamespace':
        return { body: { embed: null } };
      case 'linkNamespace':
      case 'branchNamespace':
        return { body: { source: 'own-notes' } };
      case 'putDocuments':
        return { body: { docs: [{ id: 'put', text: 'x' }] } };
      case 'patchDocuments':
        return { body: { docs: [{ id: 'a', meta: { m: unique } }] } };
      case 'deleteDocuments':
        return { body: { ids: ['put'] } };
      case 'importDocuments':
        return {
          body: 'id,n\nimported,1\n',
          query: '?id=id',
          headers: { 'content-type': 'application/octet-stream' },
        };
      case 'sql':
        return { body: { sql: 'SHOW COLUMNS' } };
      default:
        return {};
    }
  }

  async function ask(
    name: OperationName,
    method: string,
    credential: Credential,
    place: Place,
  ): Promise<{ readonly answer: ApiAnswer; readonly path: string }> {
    const { client, tenant } = clients.get(credential) ?? assert.fail(credential);
    const { query = '', body, headers = {} } = requestOf(name, place.values, ++count);
    const path =
      operations[name].path.replaceAll(/\{(\w+)\}/g, (_, key: string) => place.values[key] ?? '') + query;
    const options = {
      ...(method === 'GET' || body === undefined ? {} : { body }),
      headers: { ...headers, ...(tenant === undefined ? {} : { 'x-tenant': tenant }) },
    };
    return { answer: await client.request(method, path, options), path };
  }

  function outcomeOf({ status, body, headers }: ApiAnswer): string {
    if (status < 300) return String(status);
    assert.equal(headers['content-type'], 'application/json');
    return `${status} ${(JSON.parse(body.toString()) as ErrorBody).code}`;
  }

  /** What tells two answers apart, but for what the caller itself sent. */
  function tellingOf(answer: ApiAnswer, { values }: Place): string {
    let text = answer.body.toString();
    for (const value of Object.values(values)) text = text.replaceAll(value, '…');
    // A refusal that overtakes its body ends the connection: that is about who was quicker.
    const headers = Object.keys(answer.headers).filter(
      (name) => name !== 'connection' && name !== 'keep-alive',
    );
    return [answer.status, headers.sort().join(' '), text].join('\n');
  }

  const cells = operationList.flatMap((operation) =>
    operation.methods.flatMap((method) =>
      credentials.flatMap((credential) =>
        targetsOf[rows[operation.name].on].map((target) => ({ operation, method, credential, target })),
      ),
    ),
  );

  it('is written down for every operation and no other', () => {
    const named = operationList.map(({ name }) => name);
    assert.deepEqual(Object.keys(rows).sort(), named.toSorted());
  });

  for (const { name, methods, built } of operationList) {
    for (const method of methods) {
      it(`${name} by ${method}`, async () => {
        const row = rows[name];
        const wrong: string[] = [];
        for (const credential of credentials) {
          const telling = new Map<Target, string>();
          for (const target of targetsOf[row.on]) {
            const expected = expectedOf({ row, isBuilt: built, credential, target });
            const happens = isSuccess(expected);
            const place = await placeOf(name, target, happens);
            const { answer, path } = await ask(name, method, credential, place);
            const found = outcomeOf(answer);
            if (!expected.includes(found))
              wrong.push(
                `${credential}, ${target}: ${method} ${path} answers ${found}, not ${expected.join(' or ')}`,
              );
            if (!happens) telling.set(target, tellingOf(answer, place));
            await place.after?.();
          }
          for (const [one, another] of alike) {
            if (telling.get(one) !== undefined && telling.get(another) !== undefined)
              assert.equal(
                telling.get(one),
                telling.get(another),
                `${name}, ${credential}: ${one} and ${another} differ`,
              );
          }
        }
        assert.equal(wrong.join('\n'), '');
      });
    }
  }

  const alike: readonly (readonly [Target, Target])[] = [
    ['foreign', 'missing'],
    ['outside', 'outside and missing'],
  ];

  it('is the same for another tenant’s number as for nobody’s', async () => {
    for (const operation of operationList) {
      const [method = ''] = operation.methods;
      const place = await placeOf(operation.name, targetsOf[rows[operation.name].on][0], false);
      if (rows[operation.name].needs === 'nothing') continue;
      const foreign = await ask(operation.name, method, 'login with a foreign X-Tenant', place);
      const nobodys = await ask(operation.name, method, 'login with an X-Tenant that is nobody’s', place);
      assert.equal(tellingOf(foreign.answer, place), tellingOf(nobodys.answer, place), operation.name);
    }
  });

  it('left everything as it was that nobody was allowed to touch', async (t) => {
    t.diagnostic(
      `${cells.length} cells of ${operationList.length} operations and ${credentials.length} credentials`,
    );

    for (const namespace of ['own-notes', 'zz-outside'])
      assert.equal((await own.key.get(namespace, 'a')).text, 'tide');
    assert.equal((await other.key.get('own-foreign', 'a')).text, 'tide');
    const keys = await own.key.call<NewKey[]>('GET', '/v1/keys');
    assert.ok(keys.some(({ id }) => id === standing.keyId));
    const tenants = await own.login.call<Tenant[]>('GET', '/v1/tenants');
    assert.ok(
      [own.made.tenant_id, standing.tenantId].every((id) => tenants.some((tenant) => tenant.id === id)),
    );
    const theirs = await other.login.call<Tenant[]>('GET', '/v1/tenants');
    assert.deepEqual(
      theirs.map(({ id }) => id),
      [other.made.tenant_id, standing.foreignTenantId],
    );
    await other.key.me();
  });
});
