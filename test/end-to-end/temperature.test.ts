import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { AnswerFigures } from '../../protocol/document.ts';
import { ApiClient } from '../support/api-client.ts';
import { startServer, temporaryFolder } from '../support/server-process.ts';

const documents = Array.from({ length: 40 }, (_, n) => ({
  id: `d${n}`,
  text: `tide ${n}\n${`${n} lorem ipsum `.repeat(1_000)}`,
  meta: { n },
}));

type Ask = (api: ApiClient, namespace: string) => Promise<AnswerFigures>;

/** Each has a namespace of its own, so that none reads what another has fetched. */
const queries: { readonly [name: string]: Ask } = {
  read: (api, namespace) => api.get(namespace, 'd3'),
  search: (api, namespace) => api.search(namespace, { q: 'tide 1' }),
  list: (api, namespace) => api.search(namespace, {}),
  filter: (api, namespace) => api.search(namespace, { filter: { n: { lt: 7 } } }),
  count: (api, namespace) => api.count(namespace, { q: 'tide' }),
  estimate: (api, namespace) => api.count(namespace, { q: 'lorem', exact: false }),
  SQL: (api, namespace) =>
    api.call('POST', `/v1/namespaces/${namespace}/sql`, { sql: 'SELECT SUM(n) FROM docs' }),
  warm: (api, namespace) => api.call('POST', `/v1/namespaces/${namespace}/warm`, { queries: ['lorem'] }),
};

/** What each query told the first time in a life of the server, and the second. */
type Told = { readonly [name: string]: readonly [first: AnswerFigures, again: AnswerFigures] };

async function askAll(api: ApiClient): Promise<Told> {
  const told: { [name: string]: [AnswerFigures, AnswerFigures] } = {};
  for (const [name, ask] of Object.entries(queries)) {
    const namespace = name.toLowerCase();
    told[name] = [await ask(api, namespace), await ask(api, namespace)];
  }
  return told;
}

function assertConsistent(name: string, { temperature, store_gets }: AnswerFigures): void {
  assert.equal(temperature === 'cold', store_gets > 0, `a ${name}: ${temperature} with ${store_gets} gets`);
}

describe('temperature', () => {
  /** In its second life the server fetches what it needs, and finds it on its disk in the third. */
  const lives: { [life: number]: Told } = {};

  before(async () => {
    const options = { folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '20' } };
    let server = await startServer(options);
    const made = new ApiClient(server.url);
    const { key } = await made.signup('temperature@example.com');
    for (const name of Object.keys(queries)) await made.as(key).put(name.toLowerCase(), documents);
    made.close();
    for (const life of [2, 3]) {
      await server.stop();
      server = await startServer(options);
      const api = new ApiClient(server.url, key);
      lives[life] = await askAll(api);
      api.close();
    }
    await server.stop();
  });

  for (const name of Object.keys(queries)) {
    it(`tells where a ${name} read: the store, this server's disk, or memory`, () => {
      for (const life of [2, 3]) {
        const [first, again] = lives[life]?.[name] ?? assert.fail(`life ${life}`);
        assertConsistent(name, first);
        assertConsistent(name, again);
        if (life === 3) assert.deepEqual([first.temperature, first.store_gets], ['local', 0]);
        assert.deepEqual([again.temperature, again.store_gets], ['warm', 0]);
      }
    });
  }
});
