/**
 * Three real servers: once a revocation has been answered, no server lets anybody in by what it ended. REVOCATION_REQUESTS sets how many
 * requests are sent to all servers together after each answer, REVOCATION_ROUNDS how many keys are revoked.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { after, before, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../protocol/limits.ts';
import { ApiClient } from '../support/api-client.ts';
import { type ClusterServer, metric, ServerCluster } from '../support/cluster.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { connect } from '../support/oauth-flow.ts';
import { lettersOnceThere } from '../support/outbox.ts';
import { startServer } from '../support/server-process.ts';

const requests = Number(process.env.REVOCATION_REQUESTS ?? 90);
const rounds = Number(process.env.REVOCATION_ROUNDS ?? 6);
const email = 'ada@example.com';
const password = 'engine number 1';

describe('what was revoked on three servers', { concurrency: 1 }, () => {
  let cluster: ServerCluster;
  let key: string;
  let tenantId: number;

  const at = (index: number): ClusterServer => cluster.servers[index % 3] ?? assert.fail('no such server');
  const api = (index: number, credential = key) => new ApiClient(at(index).process.url, credential);

  /** How often a request to each server is let in; the requests of all servers are on their way together. */
  async function accepted(send: (index: number) => Promise<number>, count: number): Promise<number> {
    const statuses = await Promise.all(Array.from({ length: count }, (_, index) => send(index)));
    assert.deepEqual(
      statuses.filter((status) => status !== 200 && status !== 401),
      [],
    );
    return statuses.filter((status) => status === 200).length;
  }

  const readsWith = (credential: string) => {
    const clients = [0, 1, 2].map((index) => api(index, credential));
    return async (index: number) =>
      (await (clients[index % 3] ?? assert.fail()).request('GET', '/v1/namespaces')).status;
  };

  /** Uses a credential on all servers, has it revoked, and looks whether any of them still lets it in. */
  async function provesRevoked(
    t: TestContext,
    what: string,
    { send, revoke }: { send: (index: number) => Promise<number>; revoke: () => Promise<unknown> },
  ): Promise<void> {
    assert.equal(await accepted(send, 3), 3, 'known to all servers');
    await revoke();
    const letIn = await accepted(send, requests);
    t.diagnostic(`${what}: ${letIn} of ${requests} requests let in after the answer`);
    assert.equal(letIn, 0);
  }

  before(async () => {
    cluster = await ServerCluster.start({ servers: 3 });
    ({ key, tenant_id: tenantId } = await new ApiClient(at(0).process.url).signup(email, 'Ada', password));
  });

  after(async () => {
    await cluster.stop();
    const errors = cluster.servers.flatMap(({ process }) => process.loggedErrors());
    assert.deepEqual(errors, []);
  });

  it('keys, each made, used and revoked through other servers', async (t) => {
    for (let round = 0; round < rounds; round++) {
      const made = await api(round).createKey({ name: `k${round}`, scope: 'read' });
      const revoke = () => api(round + 1).revokeKey(made.id);
      await provesRevoked(t, `key ${round}`, { send: readsWith(made.key), revoke });
    }
  });

  it('a key that is asked with all the time: none of its requests that begin after the answer is let in', async (t) => {
    const made = await api(0).createKey({ name: 'busy', scope: 'read' });
    const send = readsWith(made.key);
    let [isOver, revokedAt, late, before] = [false, Number.POSITIVE_INFINITY, 0, 0];
    const asking = Array.from({ length: 12 }, async (_, worker) => {
      for (let n = worker; !isOver; n++) {
        const beganAt = performance.now();
        const isLetIn = (await send(n)) === 200;
        if (isLetIn && beganAt > revokedAt) late++;
        if (isLetIn) before++;
      }
    });
    await sleep(2_500);

    await api(1).revokeKey(made.id);
    revokedAt = performance.now();
    await sleep(500);
    isOver = true;
    await Promise.all(asking);

    t.diagnostic(`${before} requests let in before the answer, ${late} after it`);
    assert.ok(before > 100);
    assert.equal(late, 0);
  });

  it('logins, by a new password', async (t) => {
    const token = await api(2).login(email, password);
    const send = readsWith(token);
    const revoke = async () => {
      await api(1).call('POST', '/v1/password/forgot', { email });
      const isReset = ({ kind }: { kind: string }) => kind === 'reset';
      const [letter] = await lettersOnceThere(at(1).options.folder, isReset);
      const reset = { token: letter?.token ?? '', password: 'engine number 2' };
      await api(0).call('POST', '/v1/password/reset', reset);
    };
    await provesRevoked(t, 'login', { send, revoke });
    // It was the first proof that the address is Ada's: what was made before it has ended, too.
    assert.equal(await accepted(readsWith(key), 3), 0);
    const login = await api(1).login(email, 'engine number 2');
    key = (await api(0, login).createKey({ name: 'after', scope: 'admin' })).key;
  });

  it('what MCP clients were let have', async (t) => {
    const { tokens } = await connect(at(0).process.url, { email, password: 'engine number 2' });
    const callers = [0, 1, 2].map((index) => new McpCaller(at(index).process.url, tokens.access_token));
    const send = async (index: number) =>
      (
        await (callers[index % 3] ?? assert.fail()).send({
          body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
        })
      ).status;
    const [connection] = await api(0).call<{ id: number }[]>('GET', '/v1/connections');
    const revoke = () => api(2).call('DELETE', `/v1/connections/${connection?.id}`);
    await provesRevoked(t, 'connection', { send, revoke });
  });

  it('a tenant that is deleted, with its keys', async (t) => {
    const login = await api(0).login(email, 'engine number 2');
    const made = await api(0, login).call<{ id: number }>('POST', '/v1/tenants', { name: 'second' });
    const headers = { 'x-tenant': String(made.id) };
    const body = { name: 'k', scope: 'read' };
    const answer = await api(1, login).request('POST', '/v1/keys', { headers, body });
    const { key: ofSecond } = answer.json() as { key: string };
    const revoke = () => api(2, login).call('DELETE', `/v1/tenants/${made.id}`);
    await provesRevoked(t, 'deleted tenant', { send: readsWith(ofSecond), revoke });
  });

  it('a server that the revocation does not reach lets nobody in, either', async (t) => {
    const owner = await cluster.ownerOf(tenantId, '');
    const cutOff = cluster.servers.find((server) => server !== owner) ?? assert.fail();
    const index = cluster.servers.indexOf(cutOff);
    const way = await cuttableWay(Number(cutOff.options.env?.TIDEBASE_PEER_PORT));
    await cutOff.process.stop();
    const env = { ...cutOff.options.env, TIDEBASE_PEER_ADDRESS: `127.0.0.1:${way.port}` };
    cutOff.process = await startServer({ ...cutOff.options, env });
    await cluster.whenActive();
    const made = await api(0).createKey({ name: 'cut off', scope: 'read' });
    const send = readsWith(made.key);
    // The last use is just before the cut, and nothing renews it.
    assert.equal(await accepted(send, 3), 3);

    way.cut();
    const began = performance.now();
    await new ApiClient(owner.process.url, key).revokeKey(made.id);
    const tookMs = performance.now() - began;
    const letIn = await accepted(() => send(index), requests);

    t.diagnostic(`not reached: ${letIn} of ${requests} let in; the revocation took ${Math.round(tookMs)} ms`);
    assert.equal(letIn, 0);
    assert.ok(tookMs >= limits.revocationWaitMs - 10);
    assert.equal(await metric(owner.metricsUrl, 'tidebase_revocations_unconfirmed_total'), 1);
    way.close();
  });
});

/** A way to a port of this machine on which bytes stop flowing, without a word, once it is cut. */
async function cuttableWay(targetPort: number) {
  const sockets = new Set<Socket>();
  let isCut = false;
  const pass = (from: Socket, to: Socket) => {
    sockets.add(from);
    from.on('data', (bytes) => isCut || to.write(bytes));
    from.on('error', () => {});
    from.on('close', () => to.destroy());
  };
  const server = createServer((client) => {
    const target = connectTo(targetPort, '127.0.0.1');
    pass(client, target);
    pass(target, client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
