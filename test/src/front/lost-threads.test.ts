import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { internalCallList, internalCalls } from '../../../protocol/internal-calls.ts';
import { limits } from '../../../protocol/limits.ts';
import { noCaller } from '../../../protocol/messages.ts';
import { type OperationName, operationList, operations } from '../../../protocol/operations.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { PortChannel } from '../../../src/base/port-channel.ts';
import { Router } from '../../../src/router/router.ts';
import { type AskedOperation, type FrontInProcess, startFront } from '../../support/front-in-process.ts';

/** What callers hear when the thread that did their work dies before it has answered, row by row of both tables. */
describe('the router, of a call whose thread died with it', () => {
  /** Calls that leave something behind, and that may be made again as if nothing had been done. */
  const repeatable: readonly string[] = [
    'billingWebhook',
    internalCalls.setBilling,
    internalCalls.meteredUsage,
    internalCalls.beginRequest,
    internalCalls.resolveNamespace,
    internalCalls.reportNamespace,
    internalCalls.dropNamespace,
    internalCalls.reportHeld,
    internalCalls.shareNamespace,
    internalCalls.namespaceBegan,
    internalCalls.releaseNamespace,
    internalCalls.collectNamespace,
  ];

  for (const { name, effect } of [...operationList, ...internalCallList]) {
    const isUnknown = effect.does === 'write' && !repeatable.includes(name);
    it(`says that ${name} ${isUnknown ? 'may have been done' : 'was not done'}`, async () => {
      const code = await codeOfLost(name);

      assert.equal(code, isUnknown ? 'write_unknown' : 'unavailable');
    });
  }
});

async function codeOfLost(operation: string): Promise<string> {
  const router = new Router({ forget: () => {}, clock: systemClock, recentOwners: null });
  const { port1, port2 } = new MessageChannel();
  const channel = new PortChannel(port1, router.handler(), limits.messageInlineBytesMax);
  port2.on('message', () => channel.close());
  router.use([{ channel }]);
  const to = { tenantId: 1, namespace: '', argument: '', query: '', deadlineMs: 1_000, caller: noCaller };
  const refused: unknown = await router.call({ operation, ...to }).then(
    () => assert.fail('nobody answers'),
    (error: unknown) => error,
  );
  return (refused as { readonly code: string }).code;
}

interface Row {
  /** Makes what the operation is about, and says what to ask. */
  readonly asked: AskedOperation | ((server: FrontInProcess) => Promise<AskedOperation>);
  /** The calls to actors that it is made of; each of them may be the last of its thread. By default there is one of its name. */
  readonly calls?: Readonly<Record<string, '503 write_unknown' | '503 unavailable'>>;
  /** How many there are of what it makes, for operations that heed an `Idempotency-Key`. */
  readonly made?: (server: FrontInProcess) => Promise<number>;
}

const inNamespace = { parameters: { name: 'notes' } } as const;
const aDocument = { docs: [{ id: 'a', text: 'tide', meta: { n: 1 } }] };
const unknown = '503 write_unknown';

/** Each operation with what it takes to ask it, or why no actor's thread can leave its outcome unknown. */
const rows: Readonly<Record<OperationName, Row | 'reads' | 'not built' | 'has a test of its own'>> = {
  signup: 'has a test of its own',
  login: 'reads',
  verifyEmail: 'has a test of its own',
  resendVerification: 'has a test of its own',
  forgotPassword: 'has a test of its own',
  resetPassword: 'has a test of its own',
  me: 'reads',
  listKeys: 'reads',
  createKey: {
    asked: { body: { name: 'k', scope: 'read' } },
    made: async (server) => (await server.run('listKeys')).body.length ?? 0,
  },
  revokeKey: { asked: async (server) => ({ parameters: { id: await newKey(server) } }) },
  replaceKeyLimits: {
    asked: async (server) => ({
      parameters: { id: await newKey(server) },
      body: { namespaces: [], rate_per_s: 5, cap_queries: null, cap_writes: null },
    }),
  },
  listConnections: 'reads',
  // What ends is no actor's, and who is told of it is told again: test/src/oauth/connections.test.ts.
  endConnection: 'has a test of its own',
  listEmbeddingKeys: 'reads',
  putEmbeddingKey: { asked: { parameters: { provider: 'openai' }, body: { key: 'sk-0123456789' } } },
  deleteEmbeddingKey: { asked: { parameters: { provider: 'openai' } } },
  listTenants: 'reads',
  createTenant: {
    asked: { body: { name: 'T' } },
    calls: {
      [internalCalls.beginRequest]: '503 unavailable',
      [internalCalls.createTenant]: unknown,
      [internalCalls.getTenant]: unknown,
      [internalCalls.endRequest]: unknown,
    },
    made: async (server) =>
      new Set(
        server.calls
          .filter(({ operation }) => operation === internalCalls.createTenant)
          .map(({ tenantId }) => tenantId),
      ).size,
  },
  deleteTenant: {
    asked: async (server) => {
      const { body } = await server.run('createTenant', { body: { name: 'T' } });
      return { parameters: { id: String(body.id) } };
    },
    calls: { [internalCalls.setTenantStatus]: unknown },
  },
  usage: 'reads',
  billing: 'reads',
  billingCheckout: 'has a test of its own',
  billingPortal: 'has a test of its own',
  billingWebhook: 'has a test of its own',
  createNamespace: {
    asked: { body: { name: 'made' } },
    made: async (server) => {
      const { body } = await server.run('listNamespaces');
      return body.namespaces.filter(({ name }: { name: string }) => name === 'made').length;
    },
  },
  listNamespaces: 'reads',
  getNamespace: 'reads',
  updateNamespace: { asked: { ...inNamespace, body: { embed: null } } },
  deleteNamespace: {
    asked: async (server) => {
      await server.run('createNamespace', { body: { name: 'gone' } });
      return { parameters: { name: 'gone' } };
    },
  },
  linkNamespace: {
    asked: async (server) => {
      await server.run('createNamespace', { body: { name: 'of-link' } });
      return { parameters: { name: 'made-link' }, body: { source: 'of-link' } };
    },
    made: async (server) => {
      const { body } = await server.run('listNamespaces');
      return body.namespaces.filter(({ name }: { name: string }) => name === 'made-link').length;
    },
  },
  branchNamespace: {
    asked: async (server) => {
      await server.run('createNamespace', { body: { name: 'of-branch' } });
      return { parameters: { name: 'made-branch' }, body: { source: 'of-branch' } };
    },
    made: async (server) => {
      const { body } = await server.run('listNamespaces');
      return body.namespaces.filter(({ name }: { name: string }) => name === 'made-branch').length;
    },
  },
  putDocuments: { asked: { ...inNamespace, body: aDocument } },
  patchDocuments: { asked: { ...inNamespace, body: { docs: [{ id: 'a', meta: { n: 2 } }] } } },
  deleteDocuments: { asked: { ...inNamespace, body: { ids: ['a'] } } },
  getDocument: 'reads',
  importDocuments: 'has a test of its own',
  search: 'reads',
  count: 'reads',
  sql: 'reads',
  warm: 'reads',
  healthz: 'reads',
  openapi: 'reads',
};

async function newKey(server: FrontInProcess): Promise<string> {
  const { body } = await server.run('createKey', { body: { name: 'k', scope: 'read' } });
  return String(body.id);
}

describe('an operation whose thread dies in the middle', () => {
  let server: FrontInProcess;

  before(async () => {
    server = await startFront();
    assert.equal((await server.run('putDocuments', { ...inNamespace, body: aDocument })).status, 200);
  });

  after(() => server.stop());

  it('is in the table by what it does', () => {
    for (const { name, effect, built } of operationList) {
      assert.equal(rows[name] === 'reads', effect.does === 'read', name);
      assert.equal(rows[name] === 'not built', !built, name);
      const row = rows[name];
      if (typeof row === 'object') assert.equal(row.made !== undefined, operations[name].idempotent, name);
    }
  });

  let keys = 0;
  for (const [name, row] of Object.entries(rows) as [OperationName, Row | string][]) {
    if (typeof row === 'string') continue;
    for (const [call, expected] of Object.entries(row.calls ?? { [name]: unknown })) {
      it(`${name} answers ${expected} when the thread dies with ${call}`, async () => {
        const asked = typeof row.asked === 'function' ? await row.asked(server) : row.asked;
        const idempotencyKey = `key ${keys++}`;
        const before = (await row.made?.(server)) ?? 0;
        server.dieWith(call);

        const lost = await server.run(name, { ...asked, idempotencyKey });

        assert.equal(`${lost.status} ${lost.body?.code}`, expected);
        assert.equal(lost.headers.get('retry-after'), '1');
        // Nothing was begun by what is unavailable. (Here the actor lives on, and would say that the request is under way.)
        if (row.made === undefined || expected !== unknown) return;
        const again = await server.run(name, { ...asked, idempotencyKey });
        const third = await server.run(name, { ...asked, idempotencyKey });
        assert.deepEqual([again.status, third.status], [201, 201], again.text);
        assert.equal(third.text, again.text);
        assert.equal((await row.made(server)) - before, 1, 'one was made');
      });
    }
  }

  it('makes no second tenant that the person would see', async () => {
    const list = async () => (await server.run('listTenants')).body.length as number;
    const before = await list();
    const asked = { body: { name: 'T' }, idempotencyKey: 'seen' };
    server.dieWith(internalCalls.createTenant);

    const lost = await server.run('createTenant', asked);
    const again = await server.run('createTenant', asked);

    assert.deepEqual([lost.status, again.status], [503, 201]);
    assert.equal((await list()) - before, 1);
  });
});
