import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { QueryReport } from '../../protocol/document.ts';
import { ApiClient } from '../support/api-client.ts';
import { startServer, temporaryFolder } from '../support/server-process.ts';

const documents = Array.from({ length: 40 }, (_, n) => ({
  id: `d${n}`,
  text: `tide ${n}\n${`${n} lorem ipsum `.repeat(1_000)}`,
  meta: { n },
}));

type Ask = (api: ApiClient) => Promise<QueryReport>;

const queries: { readonly [name: string]: Ask } = {
  read: (api) => api.get('n', 'd3'),
  search: (api) => api.search('n', { q: 'tide 1' }),
  list: (api) => api.search('n', {}),
  filter: (api) => api.search('n', { filter: { n: { lt: 7 } } }),
  count: (api) => api.count('n', { q: 'tide' }),
  estimate: (api) => api.count('n', { q: 'lorem', exact: false }),
  SQL: (api) => api.call('POST', '/v1/namespaces/n/sql', { sql: 'SELECT SUM(n) FROM docs' }),
  warm: (api) => api.call('POST', '/v1/namespaces/n/warm', { queries: ['lorem'] }),
};

function assertConsistent(name: string, { temperature, store_gets }: QueryReport): void {
  assert.equal(temperature === 'cold', store_gets > 0, `a ${name}: ${temperature} with ${store_gets} gets`);
}

describe('temperature', () => {
  for (const [name, ask] of Object.entries(queries)) {
    it(`tells where a ${name} read: the store, this server's disk, or memory`, async () => {
      const options = { folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '20' } };
      let server = await startServer(options);
      const made = new ApiClient(server.url);
      const { key } = await made.signup('temperature@example.com');
      await made.as(key).put('n', documents);
      made.close();

      // In its second life the server fetches what it needs, and finds it on its disk in the third.
      for (const life of [2, 3]) {
        await server.stop();
        server = await startServer(options);
        const api = new ApiClient(server.url, key);
        const first = await ask(api);
        const again = await ask(api);
        api.close();

        assertConsistent(name, first);
        assertConsistent(name, again);
        if (life === 3) assert.deepEqual([first.temperature, first.store_gets], ['local', 0]);
        assert.deepEqual([again.temperature, again.store_gets], ['warm', 0]);
      }
      await server.stop();
    });
  }
});
