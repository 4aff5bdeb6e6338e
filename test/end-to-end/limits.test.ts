import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type ApiAnswer, ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** The built-in plans, as a person gets them: the free one has 100 requests a second and 16 in flight. */
describe('the limits of the free plan', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), plans: 'built-in' });
    anyone = new ApiClient(server.url);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  it('are told in every answer, the tighter of plan and key', async () => {
    const { key } = await anyone.signup('told@example.com');
    const owner = anyone.as(key);
    const slow = anyone.as((await owner.createKey({ name: 'slow', rate_per_s: 2 })).key);

    const byPlan = await owner.request('GET', '/v1/namespaces');
    const byKey = await slow.request('GET', '/v1/namespaces');

    assert.equal(byPlan.headers['ratelimit-limit'], '100');
    assert.equal(byPlan.headers['ratelimit-policy'], '100;w=1');
    assert.equal(byKey.headers['ratelimit-limit'], '2');
    assert.ok(Number(byKey.headers['ratelimit-remaining']) <= 1);
  });

  it('refuse more than 16 writes in flight, and the next ones are taken', async () => {
    const api = anyone.as((await anyone.signup('flight@example.com')).key);
    await api.createNamespace('flight');

    let sent = 0;
    const answers = await untilRefused(() => {
      const docs = [{ id: `d${sent++}`, text: 'x' }];
      return api.request('POST', '/v1/namespaces/flight/docs', { body: { docs } });
    }, 40);

    const written = answers.filter(({ status }) => status === 200).length;
    assert.ok(written >= 16, `${written} were taken`);
    for (const answer of answers) if (answer.status !== 200) assertRateLimited(answer);
    assert.equal((await api.count('flight')).count, written);
  });

  it('refuse more than two SQL queries at once', async () => {
    const api = anyone.as((await anyone.signup('sql@example.com')).key);
    await api.put('sql', [{ id: 'a', text: 'x', meta: { n: 1 } }]);

    const body = { sql: 'SELECT SUM(n) FROM docs' };
    const answers = await untilRefused(() => api.request('POST', '/v1/namespaces/sql/sql', { body }), 12);

    const answered = answers.filter(({ status }) => status === 200).length;
    assert.ok(answered >= 2, `${answered} were answered`);
    for (const answer of answers) {
      if (answer.status === 200) continue;
      assertRateLimited(answer);
      assert.match((answer.json() as { error: string }).error, /2 SQL queries/);
    }
    assert.equal((await api.request('POST', '/v1/namespaces/sql/sql', { body })).status, 200);
  });

  it('refuse more than 100 requests in a second, of all keys of the tenant together', async () => {
    const owner = anyone.as((await anyone.signup('rate@example.com')).key);
    const other = anyone.as((await owner.createKey({ name: 'other' })).key);
    const answers: ApiAnswer[] = [];

    // Two windows and more, eight at a time; as long as it takes to send more than three of them allow, or more than one does.
    const began = performance.now();
    const isOver = () =>
      performance.now() - began >= 1_200 &&
      answers.length > 300 &&
      answers.some(({ status }) => status !== 200);
    const lane = async (api: ApiClient) => {
      while (!isOver() && performance.now() - began < 60_000)
        answers.push(await api.request('GET', '/v1/namespaces'));
    };
    await Promise.all([owner, other].flatMap((api) => [lane(api), lane(api), lane(api), lane(api)]));

    const served = answers.filter(({ status }) => status === 200).length;
    const windows = Math.floor((performance.now() - began) / 1_000) + 2;
    assert.ok(served <= 100 * windows, `${served} were served in at most ${windows} windows`);
    assert.ok(served >= 100 && served < answers.length, `${served} of ${answers.length} were served`);
    for (const answer of answers) if (answer.status !== 200) assertRateLimited(answer);
  });
});

/** With a pause, so that it is not the rate that refuses. */
const roundMs = 1_000;

/** So many at once, again and again where the machine is so busy that one is answered before the next comes. */
async function untilRefused(send: () => Promise<ApiAnswer>, atOnce: number): Promise<ApiAnswer[]> {
  const answers: ApiAnswer[] = [];
  await eventually(
    async () => {
      answers.push(...(await Promise.all(Array.from({ length: atOnce }, send))));
      return answers.some(({ status }) => status !== 200);
    },
    'one of them is refused',
    roundMs,
  );
  return answers;
}

function assertRateLimited(answer: ApiAnswer): void {
  assert.equal(answer.status, 429);
  assert.equal((answer.json() as { code: string }).code, 'rate_limited');
  assert.equal(answer.headers['retry-after'], '1');
}
