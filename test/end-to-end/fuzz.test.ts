import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { runFuzz } from '../../load-tests/fuzz-run.ts';
import { naughtyStrings } from '../../load-tests/fuzz-values.ts';
import { type ApiAnswer, ApiClient } from '../support/api-client.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** Nobody listens there: keys of providers are refused without a call to anybody. */
const nobody = 'http://127.0.0.1:9';
const env = {
  TIDEBASE_COMMIT_MS: '20',
  OPENAI_BASE_URL: nobody,
  COHERE_BASE_URL: nobody,
  GOOGLE_BASE_URL: nobody,
  MISTRAL_BASE_URL: nobody,
};
const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const requests = Number(process.env.FUZZ_REQUESTS ?? 1_500);

describe('whatever is sent', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;

  before(async () => {
    // `server`, without a supervisor: a process that ends is not started again.
    server = await startServer({ folder: temporaryFolder(), env });
    anyone = new ApiClient(server.url);
  });

  after(async () => {
    anyone.close();
    assert.ok(server.running, server.errors);
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  it(`requests made from the description are answered as it says (FUZZ_SEED=${seed})`, async () => {
    const { failures, sent, statuses } = await runFuzz({ url: server.url, seed, requests });

    assert.deepEqual(failures, []);
    assert.equal(sent, requests);
    assert.ok((statuses.get(200) ?? 0) > requests / 10, 'many of them are right');
    assert.ok((statuses.get(422) ?? 0) > requests / 10, 'and many are wrong');
  });

  it('a naughty string in every field of every operation is taken or refused, and comes back as it went in', async () => {
    const { key } = await anyone.signup('naughty@example.com');
    const api = anyone.as(key);
    const person = anyone.as(await anyone.login('naughty@example.com'));
    await api.put('naughty', [{ id: 'kept', text: 'kept' }]);
    await api.put('vectors', [{ id: 'kept', vector: [1, 2] }]);
    let taken = 0;

    for (const naughty of naughtyStrings) {
      const sent = [...bodiesWith(naughty), ...queriesWith(naughty)];
      const answers = await Promise.all(
        sent.map(([method, path, body]) => api.request(method, path, { body })),
      );
      for (const [i, answer] of answers.entries()) assertAnswered(answer, sent[i] ?? ['', '', null]);
      taken += answers.filter(({ status }) => status < 300).length;
      assertAnswered(
        await person.request('POST', '/v1/tenants', { body: { name: naughty, plan: naughty } }),
        ['POST', '/v1/tenants', naughty],
      );
      const written = await api.request('POST', '/v1/namespaces/naughty/docs', {
        body: { docs: [{ id: 'echo', text: naughty, meta: { [naughty]: naughty } }] },
      });
      assert.equal(written.status, 200, JSON.stringify(naughty));
      const { text, meta } = await api.get('naughty', 'echo');
      assert.deepEqual([text, meta], [naughty, { [naughty]: naughty }]);
      const found = await api.search('naughty', { q: naughty, filter: { [naughty]: naughty } });
      assert.deepEqual(
        found.hits.map(({ id }) => id),
        naughty.length > 4_000 ? [] : ['echo'],
      );
    }
    assert.ok(taken > naughtyStrings.length, `${taken} were taken`);
  });
});

type Sent = readonly [method: string, path: string, body: unknown];

function assertAnswered(answer: ApiAnswer, [method, path, body]: Sent): void {
  const shown = `${method} ${path} ${JSON.stringify(body)}: ${answer.status} ${answer.body.toString().slice(0, 300)}`;
  assert.ok(answer.status < 500 || answer.status === 502, shown);
}

/** The string in every string field of every operation with a body, each in a request that is right apart from it. */
function bodiesWith(naughty: string): readonly Sent[] {
  const at = '/v1/namespaces/naughty';
  const embed = { provider: naughty, model: naughty };
  return [
    ['POST', '/v1/keys', { name: naughty }],
    ['POST', '/v1/keys', { name: 'k', scope: naughty, namespaces: [naughty] }],
    ['PUT', '/v1/keys/1/limits', { namespaces: [naughty], rate_per_s: naughty }],
    ['PUT', '/v1/embedding-keys/openai', { key: naughty, [naughty]: 1 }],
    ['POST', '/v1/email/verify', { token: naughty }],
    ['POST', '/v1/password/reset', { token: naughty, password: naughty }],
    ['POST', '/v1/namespaces', { name: naughty }],
    ['POST', '/v1/namespaces', { name: 'made', vector: { dims: naughty, metric: naughty } }],
    ['POST', '/v1/namespaces', { name: 'made', embed }],
    ['PATCH', at, { embed }],
    ['POST', `${at}/docs`, { docs: [{ id: naughty, text: naughty }] }],
    ['POST', `${at}/docs`, { docs: [{ id: 'v', vector: naughty }], deletes: [naughty], wait: naughty }],
    ['POST', '/v1/namespaces/vectors/docs', { docs: [{ id: 'v', vector_b64: naughty }] }],
    ['PATCH', `${at}/docs`, { docs: [{ id: 'kept', text: naughty, meta: { [naughty]: null } }] }],
    ['PATCH', `${at}/docs`, { docs: [{ id: naughty, vector_b64: naughty }] }],
    ['POST', `${at}/delete`, { ids: [naughty] }],
    ['POST', `${at}/search`, { q: naughty }],
    ['POST', `${at}/search`, { q: naughty, regex: true, scan: true }],
    ['POST', `${at}/search`, { filter: { [naughty]: { [naughty]: naughty } } }],
    ['POST', `${at}/search`, { cursor: naughty }],
    ['POST', `${at}/search`, { semantic: naughty, include: [naughty], rank: naughty }],
    ['POST', `${at}/count`, { q: naughty, filter: { [naughty]: [naughty] } }],
    ['POST', `${at}/count`, { q: naughty, exact: false }],
    ['POST', `${at}/sql`, { sql: naughty }],
    [
      'POST',
      `${at}/sql`,
      { sql: `SELECT id FROM docs WHERE contains(text, '${naughty.replaceAll("'", "''")}')` },
    ],
    ['POST', `${at}/sql`, { sql: `SELECT "${naughty.replaceAll('"', '""')}" FROM docs` }],
    ['POST', `${at}/warm`, { queries: [naughty], regex: true }],
  ];
}

/** And in every path and every parameter of a query string. */
function queriesWith(naughty: string): readonly Sent[] {
  const escaped = encodeURIComponent(naughty.toWellFormed());
  const name = escaped === '' ? '%20' : escaped;
  const none = undefined;
  return [
    ['GET', `/v1/namespaces/${name}`, none],
    ['GET', `/v1/namespaces?after=${escaped}&limit=${escaped}`, none],
    ['GET', `/v1/namespaces?after=${escaped}`, none],
    ['GET', `/v1/namespaces/naughty/docs/${name}`, none],
    ['DELETE', `/v1/namespaces/${name}`, none],
    ['DELETE', `/v1/keys/${name}`, none],
    ['DELETE', `/v1/embedding-keys/${name}`, none],
    ['GET', `/v1/usage?days=${escaped}`, none],
    ['GET', `/v1/namespaces/naughty/search?q=${escaped}`, none],
    ['GET', `/v1/namespaces/naughty/search?filter=${escaped}`, none],
    ['GET', `/v1/namespaces/naughty/count?q=${escaped}&regex=${escaped}&scan=${escaped}`, none],
    ['POST', `/v1/namespaces/imported/import?format=ndjson&id=${escaped}&text=${escaped}`, '{"a":"b"}\n'],
    ['POST', `/v1/namespaces/imported/import?schema=${escaped}`, `a,b\n${JSON.stringify(naughty)},2\n`],
  ];
}
