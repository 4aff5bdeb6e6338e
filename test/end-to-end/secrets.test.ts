/**
 * A server goes through everything that has to do with accounts, well and badly, and then every secret that it was sent or
 * made is looked for: in what it logged, in its metrics and audit files, in every stored object and the cache, and in all
 * answers. A secret belongs in the answer that shows it once, in `secrets/`, and links in `outbox/`.
 *
 * Operations that are not built yet are asked too, and go their whole way as soon as they are.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { NewKey, SignupAnswer } from '../../protocol/account.ts';
import { type OperationName, operations } from '../../protocol/operations.ts';
import { findOperation } from '../../protocol/routing.ts';
import { type ApiAnswer, ApiClient, type RequestOptions } from '../support/api-client.ts';
import { type EmbeddingDouble, startEmbeddingDouble } from '../support/embedding-doubles.ts';
import { eventually } from '../support/eventually.ts';
import { filesUnder, leaksOf, type Place, type Secret, secretText } from '../support/leaks.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const folder = temporaryFolder();
const secrets: Secret[] = [];
const answers: Place[] = [];
/** Operations whose success shows a secret, once. */
const showing = new Set<OperationName | undefined>(['signup', 'createKey', 'login']);
const providerKey = 'sk-proj-Xq7vSecretProviderKey1Zt9wRfUj3mKd';
let server: ServerProcess;
let double: EmbeddingDouble;
let anyone: ApiClient;
let metrics = '';

/** A secret of a test: sent to the server, and to be found nowhere. */
function sent(what: string, text = `${what.replaceAll(' ', '-')}-${randomBytes(9).toString('hex')}`): string {
  secrets.push(secretText(what, text));
  return text;
}

function keep(what: string, text: string): string {
  secrets.push(secretText(what, text));
  // The first eleven characters of a key are its public prefix.
  if (text.startsWith('tb_')) secrets.push(secretText(`${what} without its prefix`, text.slice(11)));
  return text;
}

function noteAnswer({ status, headers, body }: ApiAnswer, method: string, path: string): void {
  let operation: OperationName | undefined;
  try {
    const route = findOperation(method, path.split('?')[0] ?? '');
    if (route.kind === 'found') operation = route.operation.name;
  } catch {
    // Not a path that can be read.
  }
  const shows = status < 300 && showing.has(operation);
  const head = JSON.stringify(headers);
  const bytes = Buffer.concat([Buffer.from(head), shows ? Buffer.alloc(0) : body]);
  answers.push({ name: `the answer ${status} to ${method} ${operation ?? 'nothing'}`, bytes });
}

const isBuilt = (name: OperationName) => operations[name].built;

/** Whatever it answers: its answer is looked at with all others. */
async function ask(
  by: ApiClient,
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<ApiAnswer> {
  return by.request(method, path, options);
}

async function signUp(name: string): Promise<{ made: SignupAnswer; email: string; password: string }> {
  const password = sent(`password of ${name}`);
  const email = `${name}@example.com`;
  const made = await anyone.signup(email, name, password);
  keep(`first key of ${name}`, made.key);
  return { made, email, password };
}

async function logIn(email: string, password: string): Promise<ApiClient> {
  return anyone.as(keep(`login token of ${email}`, await anyone.login(email, password)));
}

/** Tokens of links in the mails to an address, or in all; quoted-printable may have cut them. */
function mailedTokens(email = ''): string[] {
  const outbox = join(folder, 'outbox');
  if (!existsSync(outbox)) return [];
  const tokens = readdirSync(outbox)
    .filter((name) => !name.endsWith('.draft'))
    .map((name) => readFileSync(join(outbox, name), 'utf8').replace(/=\r?\n/g, ''))
    .filter((mail) => mail.includes(email))
    .flatMap((mail) => [...mail.matchAll(/token=(?:3D)?([\w.~-]{16,})/g)].map(([, token]) => token ?? ''));
  return [...new Set(tokens)];
}

/** The token that is mailed to an address because of `work`, if such mails are built; it may come after the answer. */
async function tokenMailedBy(
  operation: OperationName,
  email: string,
  work: () => Promise<unknown>,
): Promise<string> {
  const known = new Set(mailedTokens(email));
  await work();
  if (!isBuilt(operation)) return sent(`token for ${operation}`);
  const fresh = () => mailedTokens(email).find((token) => !known.has(token));
  await eventually(() => fresh() !== undefined, `a mail of ${operation} comes`);
  return keep('mailed token', fresh() ?? '');
}

describe('secrets', { concurrency: 1 }, () => {
  before(async () => {
    double = await startEmbeddingDouble('openai', { key: keep('provider key', providerKey) });
    server = await startServer({
      folder,
      env: {
        TIDEBASE_COMMIT_MS: '20',
        TIDEBASE_LOG_LEVEL: 'debug',
        TIDEBASE_METRICS_PORT: '0',
        OPENAI_BASE_URL: double.baseUrl,
      },
    });
    anyone = new ApiClient(server.url);
    anyone.onAnswer = noteAnswer;
  });
  after(() => double.close());

  it('of people: signing up, logging in, and all the ways to fail', async () => {
    const { email, password } = await signUp('ada');
    await logIn(email, password);
    const wrong = sent('wrong password');
    const login = (body: unknown) => ask(anyone, 'POST', '/v1/login', { body });
    await login({ email, password: wrong });
    await login({ email: 'nobody@example.com', password });
    await login({ email: 'not an address', password });
    await login({ email, password, token: sent('secret in an unknown field') });
    await login(`{"email":"${email}","password":"${sent('password in broken JSON')}"`);
    await login(`${sent('password as a body')}`);
    await login({ email: password, password: email });
    const signup = (body: unknown) => ask(anyone, 'POST', '/v1/signup', { body });
    await signup({ email, name: 'Ada', password: sent('password for a taken address') });
    await signup({ email: 'x@example.com', name: 7, password: sent('password with a wrong name') });
    await signup({ email: 'y@example.com', name: 'Y', password: [sent('password in a list')] });
    await signup({
      email: 'z@example.com',
      name: 'Z',
      password: sent('long password', randomBytes(150).toString('hex')),
    });
    await ask(anyone, 'POST', `/v1/login?password=${sent('password in the query')}`, {
      body: { email, password },
    });
    await ask(anyone, 'PUT', '/v1/login', { body: { email, password } });
    await ask(anyone, 'GET', `/v1/login/${sent('password in the path')}`);
  });

  it('of keys: making, using, revoking, and all the ways to fail', async () => {
    const { made } = await signUp('bob');
    const admin = anyone.as(made.key);
    const headers = { 'idempotency-key': 'once' };
    const first = await ask(admin, 'POST', '/v1/keys', { body: { name: 'reader', scope: 'read' }, headers });
    const again = await ask(admin, 'POST', '/v1/keys', { body: { name: 'reader', scope: 'read' }, headers });
    for (const answer of [first, again]) keep('key', (answer.json() as NewKey).key);
    const { id, key } = first.json() as NewKey;
    await ask(anyone.as(key), 'GET', '/v1/namespaces');
    await ask(anyone, 'GET', '/v1/me', { headers: { 'x-api-key': key } });
    await ask(anyone, 'GET', '/v1/me', {
      headers: { 'x-api-key': key, authorization: `Bearer ${made.key}` },
    });
    await ask(anyone.as(key), 'POST', '/v1/keys', { body: { name: 'more' } });
    await ask(admin, 'POST', '/v1/keys', { body: { name: made.key, scope: sent('secret as a scope') } });
    await ask(admin, 'PUT', `/v1/keys/${id}/limits`, { body: { rate_per_s: 5, namespaces: ['a*'] } });
    await ask(admin, 'PUT', `/v1/keys/${id}/limits`, { body: { rate_per_s: sent('secret as a rate') } });
    await ask(admin, 'DELETE', `/v1/keys/${key}`);
    await ask(admin, 'DELETE', `/v1/keys/${id}`);
    await ask(anyone.as(key), 'GET', '/v1/me');
    await ask(anyone, 'GET', `/v1/me?api_key=${key}`);
    await ask(admin, 'GET', `/v1/me?api_key=${key}`);
    await ask(admin, 'GET', `/v1/${key}`);
    const bad = keep('key with a wrong checksum', `${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`);
    await ask(anyone.as(bad), 'GET', '/v1/me');
    await ask(anyone, 'GET', '/v1/me', { headers: { authorization: `Basic ${sent('basic credential')}` } });
    await ask(anyone, 'GET', '/v1/me', { headers: { authorization: sent('bare credential') } });
    const raw = await connectRaw(server.port);
    raw.send(`GET /v1/me HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-API-Key: ${made.key}\r\n\r\n`);
    const [refused] = await raw.waitForAnswers(1);
    raw.destroy();
    answers.push({ name: 'a refused head', bytes: refused?.body ?? Buffer.alloc(0) });
  });

  it('of logins: tokens that are changed, and that ask for others', async () => {
    const { email, password, made } = await signUp('cleo');
    const owner = await logIn(email, password);
    const token = owner.key ?? '';
    await ask(owner, 'GET', '/v1/me');
    await ask(owner, 'GET', '/v1/me', { headers: { 'x-tenant': '1' } });
    await ask(anyone.as(keep('changed token', `${token.slice(0, -2)}AA`)), 'GET', '/v1/me');
    await ask(anyone, 'GET', '/v1/me', { headers: { 'x-api-key': token } });
    await ask(owner, 'GET', '/v1/keys');
    const tenant = await ask(owner, 'POST', '/v1/tenants', { body: { name: 'second' } });
    assert.equal(tenant.status, isBuilt('createTenant') ? 201 : 501);
    if (isBuilt('createTenant')) {
      const { id } = tenant.json() as { id: number };
      const headers = { 'x-tenant': String(id) };
      const key = await ask(owner, 'POST', '/v1/keys', { body: { name: 'there' }, headers });
      keep('key of a second tenant', (key.json() as NewKey).key);
      await ask(owner, 'DELETE', `/v1/tenants/${id}`);
      await ask(anyone.as((key.json() as NewKey).key), 'GET', '/v1/me');
    }
    await ask(anyone.as(made.key), 'POST', '/v1/tenants', { body: { name: token } });
    for (const path of ['checkout', 'portal']) await ask(anyone.as(made.key), 'POST', `/v1/billing/${path}`);
  });

  it('of mails: links that verify an address or reset a password', async () => {
    const email = 'dora@example.com';
    const link = await tokenMailedBy('verifyEmail', email, () => signUp('dora'));
    const body = { token: link };
    const verified = await ask(anyone, 'POST', '/v1/email/verify', { body });
    assert.equal(verified.status, isBuilt('verifyEmail') ? 200 : 501);
    await ask(anyone, 'POST', '/v1/email/verify', { body });
    await ask(anyone, 'POST', '/v1/email/verify', { body: { token: sent('unknown token') } });
    const { made } = await signUp('emil');
    await ask(anyone.as(made.key), 'POST', '/v1/email/verify/resend');
    const token = await tokenMailedBy('forgotPassword', email, () =>
      ask(anyone, 'POST', '/v1/password/forgot', { body: { email } }),
    );
    await ask(anyone, 'POST', '/v1/password/forgot', { body: { email: 'nobody@example.com' } });
    const reset = (password: unknown) =>
      ask(anyone, 'POST', '/v1/password/reset', { body: { token, password } });
    await reset(7);
    const password = sent('new password');
    assert.equal((await reset(password)).status, isBuilt('resetPassword') ? 200 : 501);
    await reset(sent('newer password'));
    if (isBuilt('resetPassword')) await logIn(email, password);
    // Mails that are written behind their answers.
    for (const late of mailedTokens()) keep('mailed token', late);
  });

  it('of providers: keys that are stored, refused and forgotten, and a provider that fails', async () => {
    const { made } = await signUp('fay');
    const admin = anyone.as(made.key);
    const path = '/v1/embedding-keys/openai';
    const wrongKey = sent('wrong provider key');
    assert.equal((await ask(admin, 'PUT', path, { body: { key: wrongKey } })).status, 422);
    double.fault('quote-key', { times: 1 });
    await ask(admin, 'PUT', path, { body: { key: wrongKey } });
    await ask(admin, 'PUT', path, { body: { key: [wrongKey] } });
    await ask(admin, 'PUT', '/v1/embedding-keys/nobody', { body: { key: wrongKey } });
    assert.equal((await ask(admin, 'PUT', path, { body: { key: providerKey } })).status, 200);
    await ask(admin, 'GET', '/v1/embedding-keys');
    await ask(admin, 'POST', '/v1/namespaces', { body: { name: 'notes', embed: { provider: 'openai' } } });
    await admin.put('notes', [{ id: 'a', text: 'the tide turns' }]);
    await admin.search('notes', { semantic: 'ebb and flow' });
    double.fault('quote-key', { times: 10 });
    await ask(admin, 'POST', '/v1/namespaces/notes/search', { body: { semantic: 'quoted' } });
    double.fault('reset');
    const failed = await ask(admin, 'POST', '/v1/namespaces/notes/search', { body: { semantic: 'reset' } });
    assert.equal(failed.status, 502);
    double.fault(null);
    await ask(admin, 'DELETE', path);
  });

  it('are nowhere but where they belong', async () => {
    const [, url] = /^tidebase tells metrics on (\S+)$/m.exec(server.output) ?? [];
    metrics = await (await fetch(`${url}/metrics`)).text();
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    for (const { name, bytes } of filesUnder(join(folder, 'secrets'))) {
      const text = bytes.subarray(Buffer.byteLength(name)).toString().trim();
      secrets.push({ what: `the file secrets/${name}`, bytes: Buffer.from(text, 'base64') });
      secrets.push(secretText(`the text of secrets/${name}`, text));
    }

    const said: Place[] = [
      { name: 'standard output', bytes: Buffer.from(server.output) },
      { name: 'the log', bytes: Buffer.from(server.errors) },
      { name: 'metrics', bytes: Buffer.from(metrics) },
    ];
    const files = filesUnder(folder, ['secrets', 'outbox']);

    assert.deepEqual(leaksOf(secrets, [...said, ...answers, ...files]), []);
    assert.deepEqual(server.loggedErrors(), []);
    // It has looked at something.
    assert.ok(secrets.length > 40, `${secrets.length} secrets`);
    assert.ok(server.errors.split('\n').length > 60);
    for (const part of ['objects/account/', 'objects/tenant/', 'objects/log/', 'audit/', 'cache/'])
      assert.ok(
        files.some(({ name }) => name.startsWith(part)),
        part,
      );
    const held = filesUnder(join(folder, 'secrets'));
    assert.ok(leaksOf(secrets, held).length >= held.length, 'what is kept there would be found');
  });

  it('would be found in every form', () => {
    const secret = secretText('a key', 'tb_öAbC+/09"');
    const forms = [
      Buffer.from(secret.bytes),
      Buffer.from(JSON.stringify({ key: 'tb_öAbC+/09"' })),
      Buffer.from(encodeURIComponent('tb_öAbC+/09"')),
      Buffer.from(Buffer.from(secret.bytes).toString('hex')),
      ...['', 'a', 'ab'].flatMap((lead) => {
        const bytes = Buffer.concat([Buffer.from(lead), secret.bytes, Buffer.from('tail')]);
        return [Buffer.from(bytes.toString('base64')), Buffer.from(bytes.toString('base64url'))];
      }),
    ];

    for (const [at, bytes] of forms.entries())
      assert.ok(leaksOf([secret], [{ name: String(at), bytes }]).length > 0, String(at));
    assert.deepEqual(leaksOf([secret], [{ name: 'elsewhere', bytes: Buffer.from('tb_oAbC') }]), []);
  });
});
