import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type OperationName, operationList, operations } from '../../../protocol/operations.ts';
import type { LogFields } from '../../../src/base/log.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { AuditLog } from '../../../src/front/audit.ts';
import type { HttpExchange } from '../../../src/front/http-types.ts';
import type { Observed } from '../../../src/front/observed.ts';
import type { Answer } from '../../../src/front/response.ts';
import { FakeClock } from '../../support/fake-clock.ts';

/** The line that an answered request becomes, or null. */
async function lineOf(
  name: OperationName,
  answer: Partial<Answer>,
  changes: Partial<Observed> = {},
): Promise<LogFields | null> {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-audit-'));
  const lines: LogFields[] = [];
  const audit = new AuditLog({
    clock: new FakeClock(),
    logger: { ...silentLogger, info: (_, fields = {}) => void lines.push(fields) },
    folder,
    key: new Uint8Array(32),
    addressOf: () => '192.0.2.7',
  });
  const request: Observed = {
    exchange: {} as HttpExchange,
    id: 'a-1',
    beganMs: 0,
    operation: operations[name],
    parameters: { name: undefined, id: undefined, provider: undefined },
    principal: null,
    receivedBytes: 0,
    email: null,
    personId: null,
    bodyHold: null,
    ...changes,
  };
  audit.answered(request, { status: 200, headers: [], body: '', ...answer });
  await audit.close();
  rmSync(folder, { recursive: true });
  return lines[0] ?? null;
}

describe('the audit log', () => {
  it('has an event for each operation that changes accounts, keys, tenants or bills, or ends a namespace', () => {
    const audited = operationList.filter(
      ({ tag, methods }) =>
        ['accounts', 'keys', 'tenants', 'billing'].includes(tag) &&
        methods.some((method) => method !== 'GET'),
    );

    const names = [...audited.map(({ name }) => name), 'deleteNamespace'];
    const withEvents = operationList.filter(({ effect }) => effect.audits !== null);
    assert.deepEqual(withEvents.map(({ name }) => name).toSorted(), names.toSorted());
  });

  it('names each event once, in words', () => {
    const events = operationList.flatMap(({ effect }) => effect.audits ?? []);

    assert.equal(new Set(events).size, events.length);
    for (const event of events) assert.match(event, /^[a-z-]+\.[a-z-]+$/);
  });

  it('keeps nothing that somebody has pasted where an id or an address belongs', async () => {
    const parameters = { name: undefined, id: 'tb_pasted', provider: undefined };
    const principal = { auth: 'key', tenantId: 1, personId: 2, keyId: 3 } as Observed['principal'];
    const body = '{"code": "invalid", "error": "..."}';

    const revoked = await lineOf('revokeKey', { status: 422, body }, { parameters, principal });
    const loggedIn = await lineOf('login', { status: 400, body });

    const common = {
      audit: true,
      requestId: 'a-1',
      clientAddress: '192.0.2.7',
      outcome: 'refused',
      code: 'invalid',
    };
    const given = (line: LogFields | null) =>
      Object.fromEntries(Object.entries(line ?? {}).filter(([, value]) => value !== undefined));
    assert.deepEqual(given(revoked), { ...common, event: 'key.revoked', status: 422, tenantId: 1, keyId: 3 });
    assert.deepEqual(given(loggedIn), { ...common, event: 'person.logged-in', status: 400 });
  });

  it('says what a key that was made may do', async () => {
    const principal = { auth: 'key', tenantId: 1, personId: 2, keyId: 3 } as Observed['principal'];

    const made = await lineOf(
      'createKey',
      { status: 201, body: '{"id": 4, "scope": "admin"}' },
      { principal },
    );

    assert.deepEqual([made?.target, made?.scope], ['4', 'admin']);
  });

  it('says where an answer is one that was given before', async () => {
    const headers = [['Idempotent-Replayed', 'true']] as const;
    const principal = { auth: 'login', tenantId: 1, personId: 2, keyId: null } as Observed['principal'];

    const line = await lineOf('createKey', { status: 201, headers, body: '{"id": 9}' }, { principal });

    assert.equal(line?.replayed, true);
    assert.equal(line?.target, '9');
  });

  it('has no line for a question, nor for a request of nobody', async () => {
    assert.equal(await lineOf('listKeys', { status: 200 }), null);
    assert.equal(await lineOf('createKey', { status: 401 }), null);
  });
});
