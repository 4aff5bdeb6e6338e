import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { NewKey } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { lettersOnceThere } from '../support/outbox.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const password = 'correct horse';

function linesOf(server: ServerProcess): Record<string, unknown>[] {
  const folder = join(server.options.folder, 'audit');
  return readdirSync(folder)
    .toSorted()
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'))
    .map((line) => JSON.parse(line));
}

describe('the audit log', { concurrency: 1 }, () => {
  it('tells who did what and who was refused, by ids, in a file and in the log', async () => {
    const server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '20' } });
    const anyone = new ApiClient(server.url);
    const made = await anyone.signup('Ada@Example.com', 'Ada', password);
    const owner = anyone.as(await anyone.login('ada@example.com', password));
    const body = { email: 'ADA@example.com', password: 'wrong horse' };
    await anyone.refused({ status: 401, code: 'unauthorized' }, 'POST', '/v1/login', { body });
    const stranger = { email: 'nobody@example.com', password };
    await anyone.refused({ status: 401, code: 'unauthorized' }, 'POST', '/v1/login', { body: stranger });
    const admin = anyone.as(made.key);
    const key = await admin.call<NewKey>('POST', '/v1/keys', { name: 'reader', scope: 'read' });
    await anyone
      .as(key.key)
      .refused({ status: 403, code: 'forbidden' }, 'POST', '/v1/keys', { body: { name: 'x' } });
    await owner.call('DELETE', `/v1/keys/${key.id}`);
    await owner.refused({ status: 404, code: 'not_found' }, 'DELETE', `/v1/keys/${key.id}`);
    // What is no event: a question, and a request of nobody.
    await owner.me();
    await anyone.refused({ status: 401, code: 'unauthorized' }, 'POST', '/v1/keys', { body: { name: 'x' } });
    anyone.close();
    await server.stop();

    const lines = linesOf(server);
    const told = lines.map(({ time, requestId, account, clientAddress, ...line }) => line);
    const tenantId = made.tenant_id;
    const [personId, keyId, target] = [made.id, made.key_id, String(key.id)];
    const [first, reader] = [
      { target: String(keyId), scope: 'admin' },
      { target, scope: 'read' },
    ];
    assert.deepEqual(told, [
      { event: 'person.signed-up', outcome: 'done', status: 201, tenantId, personId, ...first },
      { event: 'person.logged-in', outcome: 'done', status: 200, personId },
      { event: 'person.logged-in', outcome: 'refused', status: 401, code: 'unauthorized' },
      { event: 'person.logged-in', outcome: 'refused', status: 401, code: 'unauthorized' },
      { event: 'key.created', outcome: 'done', status: 201, tenantId, keyId, ...reader },
      { event: 'key.created', outcome: 'refused', status: 403, code: 'forbidden', tenantId, keyId: key.id },
      { event: 'key.revoked', outcome: 'done', status: 204, tenantId, personId, target },
      {
        event: 'key.revoked',
        outcome: 'refused',
        status: 404,
        code: 'not_found',
        tenantId,
        personId,
        target,
      },
    ]);
    for (const line of lines) {
      assert.ok(Math.abs(Date.parse(String(line.time)) - Date.now()) < 60_000);
      assert.match(String(line.requestId), /^[\da-f]{8}-\w+$/);
      assert.equal(line.clientAddress, '127.0.0.1');
    }
    const [signedUp, loggedIn, wrong, unknown] = lines.map(({ account }) => account);
    assert.match(String(signedUp), /^[\da-f]{16}$/);
    assert.deepEqual([loggedIn, wrong], [signedUp, signedUp]);
    assert.notEqual(unknown, signedUp);
    const logged = server.errors
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ audit }) => audit === true);
    assert.deepEqual(
      logged.map(({ requestId, event, message }) => [requestId, event, message]),
      lines.map(({ requestId, event }) => [requestId, event, event]),
    );
    const [name = ''] = readdirSync(join(server.options.folder, 'audit'));
    assert.match(name, /^\d{4}-\d\d-\d\d\.jsonl$/);
    assert.equal(statSync(join(server.options.folder, 'audit', name)).mode & 0o777, 0o600);
    assert.deepEqual(server.loggedErrors(), []);
  });

  it('tells whose address was verified and whose password was set, and which namespace and tenant is gone', async () => {
    const server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '20' } });
    const anyone = new ApiClient(server.url);
    const made = await anyone.signup('ada@example.com', 'Ada', password);
    const mailed = async (kind: string) => {
      const [letter] = await lettersOnceThere(server.options.folder, (letter) => letter.kind === kind);
      return letter?.token;
    };
    await anyone.call('POST', '/v1/email/verify', { token: await mailed('verify') });
    await anyone.call('POST', '/v1/password/forgot', { email: 'ada@example.com' });
    const reset = { token: await mailed('reset'), password: 'another horse' };
    await anyone.call('POST', '/v1/password/reset', reset);
    await anyone.refused({ status: 400, code: 'bad_request' }, 'POST', '/v1/password/reset', { body: reset });
    const owner = anyone.as(await anyone.login('ada@example.com', 'another horse'));
    await owner.createNamespace('notes');
    await owner.deleteNamespace('notes');
    await owner.refused({ status: 404, code: 'not_found' }, 'DELETE', '/v1/namespaces/notes');
    const second = await owner.call<{ id: number }>('POST', '/v1/tenants', { name: 'second' });
    await owner.call('DELETE', `/v1/tenants/${second.id}`);
    anyone.close();
    await server.stop();

    const told = linesOf(server)
      .filter(({ event }) => /verified|password|deleted/.test(String(event)))
      .map(({ event, outcome, personId, tenantId, target }) => ({
        event,
        outcome,
        personId,
        tenantId,
        target,
      }));
    const none = undefined;
    const [personId, tenantId] = [made.id, made.tenant_id];
    assert.deepEqual(told, [
      { event: 'email.verified', outcome: 'done', personId, tenantId: none, target: none },
      {
        event: 'password.reset-asked',
        outcome: 'done',
        personId: none,
        tenantId: none,
        target: none,
      },
      { event: 'password.reset', outcome: 'done', personId, tenantId: none, target: none },
      { event: 'password.reset', outcome: 'refused', personId: none, tenantId: none, target: none },
      { event: 'namespace.deleted', outcome: 'done', personId, tenantId, target: 'notes' },
      { event: 'namespace.deleted', outcome: 'refused', personId, tenantId, target: none },
      { event: 'tenant.deleted', outcome: 'done', personId, tenantId, target: String(second.id) },
    ]);
  });
});
