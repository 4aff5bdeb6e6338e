/** People as they meet the server: their mails are files in its outbox. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer } from 'smtp-server';
import { type ApiAnswer, ApiClient, type ErrorBody } from '../support/api-client.ts';
import { type Letter, lettersOnceThere } from '../support/outbox.ts';
import { plansFile } from '../support/plans-file.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const badLink = { status: 400, code: 'bad_request', fields: ['token'] } as const;
const wrong = { status: 401, code: 'unauthorized' } as const;
const tooMany = { status: 429, code: 'rate_limited' } as const;

/** The mails to somebody, oldest first, once there are so many of them. */
async function lettersTo(folder: string, email: string, count: number): Promise<readonly Letter[]> {
  const isTheirs = ({ to }: Letter) => to.toLowerCase().includes(`<${email}>`);
  const letters = await lettersOnceThere(folder, isTheirs, count);
  assert.equal(letters.length, count, `mails to ${email}`);
  for (const { file, token } of letters) {
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.match(token, /^[0-9a-f]+$/);
  }
  return letters;
}

describe('people', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  let server: ServerProcess;
  let anyone: ApiClient;

  before(async () => {
    server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '20' } });
    anyone = new ApiClient(server.url);
    anyone.onAnswer = (answer, method, path) => {
      if (answer.status < 300 && path !== '/v1/namespaces')
        assert.equal(answer.headers['cache-control'], 'no-store', `${method} ${path}`);
    };
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    const said = server.output + server.errors;
    assert.match(said, /outbox\/\S+-verify\.txt/);
    const atTheStart = server.errors.indexOf('no SMTP_URL is set: mails, and the links in them, are files');
    assert.ok(atTheStart > 0 && atTheStart < server.errors.indexOf('person.signed-up'));
    assert.ok(server.errors.slice(0, atTheStart).includes(`"folder":"${join(folder, 'outbox')}"`));
    assert.ok(!/example\.com|token=|[0-9a-f]{52}/.test(said), 'no log names an address or a link');
  });

  const verify = (token: string) => anyone.call<{ verified: boolean }>('POST', '/v1/email/verify', { token });
  const reset = (token: string, password: string) =>
    anyone.call<{ reset: boolean }>('POST', '/v1/password/reset', { token, password });
  const forgot = (email: string) => anyone.request('POST', '/v1/password/forgot', { body: { email } });

  it('verify their address once, by the link of the sign-up', async () => {
    const made = await anyone.signup('ann@example.com', 'Ann Ł');
    const login = anyone.as(await anyone.login('ann@example.com'));
    const [letter] = await lettersTo(folder, 'ann@example.com', 1);
    assert.ok(letter !== undefined);
    assert.equal(letter.to, 'Ann Ł <ann@example.com>');
    assert.equal(letter.link, `${server.url}/verify?token=${letter.token}`);
    assert.equal((await login.me()).person?.verified, false);

    assert.deepEqual(await verify(letter.token), { verified: true });

    const me = await login.me();
    assert.equal(me.person?.verified, true);
    assert.equal(me.tenant_id, made.tenant_id);
    await anyone.refused(badLink, 'POST', '/v1/email/verify', { body: { token: letter.token } });
    const resent = await login.request('POST', '/v1/email/verify/resend');
    assert.deepEqual([resent.status, resent.json()], [202, { verified: true, sent: false }]);
  });

  it('are refused with a sentence where a link is none', async () => {
    for (const token of ['', 'x', '0'.repeat(52), 'ü'.repeat(26)]) {
      await anyone.refused(badLink, 'POST', '/v1/email/verify', { body: { token } });
      const body = { token, password: 'long enough' };
      await anyone.refused(badLink, 'POST', '/v1/password/reset', { body });
    }
    const missing = { status: 400, code: 'bad_request' };
    await anyone.refused({ ...missing, fields: ['token'] }, 'POST', '/v1/email/verify', { body: {} });
    await anyone.refused(missing, 'POST', '/v1/email/verify');
    await anyone.refused({ ...missing, fields: ['email'] }, 'POST', '/v1/password/forgot', {
      body: { email: 'nobody' },
    });
  });

  it('have the mail sent again once a minute, by login or by a key of theirs', async () => {
    const made = await anyone.signup('ben@example.com');
    const byKey = anyone.as(made.key);

    const sent = await byKey.request('POST', '/v1/email/verify/resend');

    assert.deepEqual([sent.status, sent.json()], [202, { verified: false, sent: true }]);
    const refusal = await byKey.refused(tooMany, 'POST', '/v1/email/verify/resend');
    assert.ok((refusal.retry_after ?? 0) > 50 && (refusal.retry_after ?? 0) <= 60);
    const byLogin = anyone.as(await anyone.login('ben@example.com'));
    await byLogin.refused(tooMany, 'POST', '/v1/email/verify/resend');
    await anyone.refused(wrong, 'POST', '/v1/email/verify/resend');
    const [first, second] = await lettersTo(folder, 'ben@example.com', 2);
    await verify(first?.token ?? '');
    await anyone.refused(badLink, 'POST', '/v1/email/verify', { body: { token: second?.token } });
    assert.deepEqual(await byKey.call('POST', '/v1/email/verify/resend'), { verified: true, sent: false });
  });

  it('set a forgotten password: old logins, the old password and other links end, keys go on', async () => {
    const email = 'cleo@example.com';
    const made = await anyone.signup(email);
    const oldToken = await anyone.login(email);
    assert.equal((await anyone.as(oldToken).me()).person?.verified, false);
    const [signedUp] = await lettersTo(folder, email, 1);
    await verify(signedUp?.token ?? '');
    const [known, again] = [await forgot(' Cleo@Example.com '), await forgot(email)];
    const [, first, second] = await lettersTo(folder, email, 3);
    assert.ok(first !== undefined && second !== undefined);
    assert.equal(first.link, `${server.url}/reset?token=${first.token}`);

    const short = { status: 422, code: 'invalid', fields: ['password'] };
    for (const password of ['1234567', 'x'.repeat(201)]) {
      const body = { token: first.token, password };
      await anyone.refused(short, 'POST', '/v1/password/reset', { body });
    }
    assert.deepEqual(await reset(first.token, 'another horse'), { reset: true });

    assert.deepEqual([known.status, again.status], [202, 202]);
    await anyone.as(oldToken).refused(wrong, 'GET', '/v1/me');
    await anyone.refused(wrong, 'POST', '/v1/login', { body: { email, password: 'correct horse' } });
    const me = await anyone.as(await anyone.login(email, 'another horse')).me();
    assert.equal(me.person?.verified, true);
    assert.equal((await anyone.as(made.key).me()).tenant_id, made.tenant_id);
    for (const { token } of [first, second]) {
      const body = { token, password: 'a third horse' };
      await anyone.refused(badLink, 'POST', '/v1/password/reset', { body });
    }
  });

  it('may not choose a password that everybody tries first, at the sign-up or later', async () => {
    const email = 'lea@example.com';
    const refused = { status: 422, code: 'invalid', fields: ['password'] } as const;
    for (const password of ['password', 'Password1', 'QWERTYUIOP', '123456789', 'iloveyou', 'TrustNo1']) {
      const body = { email, name: 'Lea', password };
      const { error } = await anyone.refused(refused, 'POST', '/v1/signup', { body });
      assert.match(error, /one of the 10,000 commonest passwords/);
    }
    await anyone.signup(email, 'Lea', 'correct horse');
    await forgot(email);
    const [, letter] = await lettersTo(folder, email, 2);
    const body = { token: letter?.token, password: 'PASSWORD' };
    await anyone.refused(refused, 'POST', '/v1/password/reset', { body });

    await reset(letter?.token ?? '', 'password that is none');

    // What somebody has chosen before would still let them in: a login judges nothing but whether it is right.
    await anyone.refused(wrong, 'POST', '/v1/login', { body: { email, password: 'password' } });
  });

  it('have answers that nobody keeps, refusals too, whoever makes them', async () => {
    const { key } = await anyone.signup('kim@example.com');
    const name = { body: { name: 'another' } };
    const answers = [
      await anyone.as(key).request('POST', '/v1/keys', name),
      await anyone.as(key).request('POST', '/v1/keys', { body: {} }),
      await anyone.request('POST', '/v1/keys', name),
      await anyone.request('POST', '/v1/login', {
        body: { email: 'kim@example.com', password: 'wrong horse' },
      }),
    ];

    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers['cache-control']]),
      [201, 422, 401, 401].map((status) => [status, 'no-store']),
    );
    const search = await anyone.as(key).request('GET', '/v1/namespaces');
    assert.equal(search.headers['cache-control'], undefined);
  });

  it('get the same answer for an address that nobody has, and no mail', async () => {
    await anyone.signup('dora@example.com');

    const known = await forgot('dora@example.com');
    const unknown = await forgot('nobody@example.com');

    const shown = ({ status, headers, body }: ApiAnswer) => {
      const { date, 'x-request-id': id, ...rest } = headers;
      assert.ok(id !== undefined);
      return { status, rest, body: body.toString() };
    };
    assert.deepEqual(shown(unknown), shown(known));
    await lettersTo(folder, 'dora@example.com', 2);
    assert.equal((await lettersTo(folder, 'nobody@example.com', 0)).length, 0);
    for (const email of ['dora@example.com', 'nobody@example.com']) {
      const statuses = [await forgot(email), await forgot(email), await forgot(email)].map(
        ({ status }) => status,
      );
      assert.deepEqual(statuses, [202, 202, 429], email);
    }
  });

  it('have to wait after ten wrong passwords, whether or not there is such an account', async () => {
    await anyone.signup('eve@example.com');
    for (const email of ['eve@example.com', 'not-eve@example.com']) {
      const body = { email, password: 'wrong horse' };
      for (let i = 0; i < 10; i++) await anyone.refused(wrong, 'POST', '/v1/login', { body });

      const right = { email, password: 'correct horse' };
      const refusal = await anyone.refused(tooMany, 'POST', '/v1/login', { body: right });

      assert.ok((refusal.retry_after ?? 0) > 0 && (refusal.retry_after ?? 0) <= 30);
    }
  });

  it('are refused by a full queue for hashing, and told when to come back', async () => {
    const email = 'flood@example.com';
    await anyone.signup(email);
    const body = { email, password: 'correct horse' };

    const answers = await Promise.all(
      Array.from({ length: 200 }, () => anyone.request('POST', '/v1/login', { body })),
    );

    const refused = answers.filter(({ status }) => status === 429);
    const letIn = answers.filter(({ status }) => status === 200);
    assert.equal(refused.length + letIn.length, 200);
    assert.ok(refused.length > 0 && letIn.length >= 32, `${letIn.length} of 200 were let in`);
    for (const answer of refused) assert.ok(((answer.json() as ErrorBody).retry_after ?? 0) >= 1);
    await anyone.login(email);
  });

  it('are hashed by a thread that steps back', { skip: process.platform !== 'linux' }, () => {
    const tasks = `/proc/${server.pid}/task`;
    const steps = readdirSync(tasks).map((thread) => {
      const text = readFileSync(join(tasks, thread, 'stat'), 'utf8');
      return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[16]);
    });

    assert.ok(steps.includes(Math.max(0, Math.min(...steps)) + 10), steps.join(' '));
  });

  it('keep their links through a restart', async () => {
    await anyone.signup('fred@example.com');
    await forgot('fred@example.com');
    const letters = await lettersTo(folder, 'fred@example.com', 2);
    const [first, second] = ['verify', 'reset'].map((kind) => letters.find((letter) => letter.kind === kind));
    await server.stop();
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);

    await reset(second?.token ?? '', 'another horse');

    await anyone.login('fred@example.com', 'another horse');
    await anyone.refused(badLink, 'POST', '/v1/email/verify', { body: { token: first?.token } });
    await anyone.signup('gina@example.com');
    await lettersTo(folder, 'gina@example.com', 1);
  });
});

describe('people behind a proxy', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;

  before(async () => {
    const env = {
      TIDEBASE_TRUSTED_PROXIES: '127.0.0.0/8',
      TIDEBASE_BASE_URL: 'https://tide.example/base',
      TIDEBASE_COMMIT_MS: '20',
    };
    server = await startServer({ folder: temporaryFolder(), plans: 'built-in', env });
    // What it prints is its public address, which leads nowhere here.
    const port = () => /"port":([0-9]+),"message":"listening"/.exec(server.errors)?.[1];
    await server.until(() => port() !== undefined, 'logs its port');
    anyone = new ApiClient(`http://127.0.0.1:${port()}`);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  it('are counted by the address that the proxy names, IPv6 by its network', async () => {
    const signup = (number: number, forwardedFor: string) =>
      anyone.request('POST', '/v1/signup', {
        body: { email: `p${number}@example.com`, name: 'P', password: 'correct horse' },
        headers: { 'x-forwarded-for': forwardedFor },
      });
    const first = await signup(0, '2001:db8::1');
    assert.equal(first.status, 201);
    for (let i = 1; i < 20; i++) {
      // The address is taken, which is the answer that has to be asked for least often.
      assert.equal((await signup(0, `198.51.100.${i}, 2001:db8::${i}`)).status, 409);
    }

    const refused = await signup(21, '2001:db8::ffff');

    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers['retry-after']) > 3_000);
    assert.equal((await signup(22, '2001:db8:0:1::1')).status, 201);
    assert.equal((await signup(23, '192.0.2.7')).status, 201);
    const folder = server.options.folder;
    const [letter] = await lettersTo(folder, 'p0@example.com', 1);
    assert.equal(letter?.link, `https://tide.example/base/verify?token=${letter?.token}`);
  });

  it('may ask for ten resets an hour from one address', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 11; i++) {
      const body = { email: `nobody${i}@example.com` };
      statuses.push((await anyone.request('POST', '/v1/password/forgot', { body })).status);
    }

    assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 202), 429]);
  });
});

describe('people who verify their address', () => {
  it('have the whole plan from that moment on, by every key', async () => {
    const folder = temporaryFolder();
    const changes = { hard_limit: true, included_queries: 300, unverified_share: 0.01 };
    const file = plansFile(folder, 'unlimited', changes);
    const server = await startServer({ folder, env: { TIDEBASE_PLANS_FILE: file } });
    const anyone = new ApiClient(server.url);
    const api = anyone.as((await anyone.signup('hal@example.com')).key);
    await api.put('notes', [{ id: '1', text: 'tide' }]);
    for (let i = 0; i < 3; i++) await api.count('notes');
    const unverified = { status: 402, code: 'email_unverified' };
    await api.refused(unverified, 'POST', '/v1/namespaces/notes/count', { body: {} });

    const [letter] = await lettersTo(folder, 'hal@example.com', 1);
    await anyone.call('POST', '/v1/email/verify', { token: letter?.token });

    assert.equal((await api.count('notes')).count, 1);
    anyone.close();
    await server.stop();
  });
});

describe('people whose address somebody else signed up with', () => {
  it('end by their reset whatever that one made, in every tenant and at once', async () => {
    const folder = temporaryFolder();
    let server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '20' } });
    let anyone = new ApiClient(server.url);
    const email = 'owner@example.com';
    // The attacker signs up with an address that is not theirs, and makes all that can be made.
    const made = await anyone.signup(email, 'Not the owner');
    const attacker = anyone.as(await anyone.login(email));
    const second = await attacker.call<{ id: number }>('POST', '/v1/tenants', { name: 'second' });
    const inSecond = { headers: { 'x-tenant': String(second.id) } };
    const byLogin = await attacker.createKey({ name: 'by login', scope: 'admin' });
    const byKey = await anyone.as(byLogin.key).createKey({ name: 'by key', scope: 'read' });
    const elsewhere = await attacker.request('POST', '/v1/keys', {
      body: { name: 'in the second tenant', scope: 'admin' },
      ...inSecond,
    });
    const keys = [made.key, byLogin.key, byKey.key, (elsewhere.json() as { key: string }).key];
    await anyone.as(made.key).put('notes', [{ id: 'before', text: 'of the attacker' }]);
    for (const key of keys) await anyone.as(key).me();
    // They go on making keys, by a key and by the login, while the owner resets the password.
    let isOver = false;
    const caught: string[] = [];
    const racing = [attacker, anyone.as(byLogin.key)].map(async (client) => {
      while (!isOver) {
        const answer = await client.request('POST', '/v1/keys', { body: { name: 'late', scope: 'admin' } });
        if (answer.status === 201) caught.push((answer.json() as { key: string }).key);
        else if (answer.status !== 503) return;
      }
    });
    await anyone.call('POST', '/v1/password/forgot', { email });
    const [, letter] = await lettersTo(folder, email, 2);
    while (caught.length < 2) await sleep(5);

    await anyone.call('POST', '/v1/password/reset', { token: letter?.token, password: 'the owner knows' });

    const lateKeys = caught.length;
    isOver = true;
    await Promise.all(racing);
    assert.ok(lateKeys >= 2);
    for (const key of [...keys, ...caught]) await anyone.as(key).refused(wrong, 'GET', '/v1/me');
    await attacker.refused(wrong, 'GET', '/v1/me');
    const owner = anyone.as(await anyone.login(email, 'the owner knows'));
    assert.deepEqual(await owner.call('GET', '/v1/keys'), []);
    const listed = await owner.request('GET', '/v1/keys', inSecond);
    assert.deepEqual([listed.status, listed.json()], [200, []]);
    // Tenants and their data stay, and the owner works on.
    assert.equal((await owner.get('notes', 'before')).text, 'of the attacker');
    const { key } = await owner.createKey({ name: 'of the owner', scope: 'admin' });
    await anyone.as(key).put('notes', [{ id: 'secret', text: 'of the owner' }]);
    await server.stop();
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);
    for (const dead of [...keys, ...caught]) await anyone.as(dead).refused(wrong, 'GET', '/v1/me');
    assert.equal((await anyone.as(key).get('notes', 'secret')).text, 'of the owner');
    anyone.close();
    await server.stop();
    assert.deepEqual(server.loggedErrors(), []);
  });
});

describe('people of a server with a mail server', () => {
  it('get their mails by SMTP, and nothing is put into the outbox', async () => {
    const received: Email[] = [];
    const smtp = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      logger: false,
      onData(stream, _, done) {
        const parts: Buffer[] = [];
        stream.on('data', (part: Buffer) => parts.push(part));
        stream.on('end', () => {
          PostalMime.parse(Buffer.concat(parts))
            .then((mail) => received.push(mail))
            .then(() => done(), done);
        });
      },
    });
    await new Promise<void>((resolve) => smtp.listen(0, '127.0.0.1', resolve));
    const { port } = smtp.server.address() as AddressInfo;
    const folder = temporaryFolder();
    const env = {
      SMTP_URL: `smtp://127.0.0.1:${port}`,
      TIDEBASE_SMTP_TLS: 'optional',
      MAIL_FROM: 'Tide <tide@example.com>',
    };
    const server = await startServer({ folder, env });
    const anyone = new ApiClient(server.url);

    await anyone.signup('ida@example.com', 'Ida Ø');
    // It is sent while the server stops, at the latest.
    await server.stop();

    const [mail] = received;
    assert.deepEqual(mail?.to, [{ name: 'Ida Ø', address: 'ida@example.com' }]);
    assert.deepEqual(mail?.from, { name: 'Tide', address: 'tide@example.com' });
    assert.match(mail?.text ?? '', new RegExp(`^${server.url}/verify\\?token=[0-9a-f]{52}\\s*$`, 'm'));
    assert.ok(!readdirSync(folder).includes('outbox'));
    assert.ok(!/outbox|mail-files/.test(server.errors), 'mails are no files here');
    anyone.close();
    await new Promise<void>((resolve) => smtp.close(resolve));
  });

  it('can sign up while the mail server says nothing, and the server stops in time', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const env = { SMTP_URL: `smtp://127.0.0.1:${port}` };
    const server = await startServer({ folder: temporaryFolder(), env });
    const anyone = new ApiClient(server.url);

    await anyone.signup('jo@example.com');
    anyone.close();
    // It fails where the server does not end by itself.
    const end = await server.stop();

    assert.deepEqual(end, { code: 0, signal: null });
    assert.ok(!/jo@|token/.test(server.errors));
    silent.close();
  });
});
