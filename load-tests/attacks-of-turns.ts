import { seededRandom } from '../test/support/segments.ts';
import type { Attack } from './attack.ts';
import type { Ask, AttackSite } from './attack-site.ts';
import { costlyCountAsk, prepareLargeTexts } from './attacks-of-sql.ts';

/** Queues, lanes and caches: many small things that keep others from their turn, or put their data out of memory. */
const search = (namespace: string, body: object, tenant = 0): Ask => ({
  path: `/v1/namespaces/${namespace}/search`,
  body: JSON.stringify(body),
  tenant,
});

const manyNamespaces = 1_000;
const touchedBytes = { small: 15_000, large: 1_200_000 };
async function prepareMany(site: AttackSite): Promise<void> {
  const random = seededRandom(5);
  const bytes = site.isLarge ? touchedBytes.large : touchedBytes.small;
  const noise = Buffer.from(
    Uint8Array.from({ length: bytes + 2_000 }, () => 0x61 + Math.floor(random() * 26)),
  ).toString('latin1');
  let next = 0;
  const one = async () => {
    for (let at = next++; at < manyNamespaces; at = next++) {
      const from = at % 2_000;
      await site.prepareDocs(`n${at}`, [{ id: 'a', text: `tide ${noise.slice(from, from + bytes)}` }], at);
    }
  };
  await Promise.all(Array.from({ length: 32 }, one));
}

const dims = 64;
/** As JSON about 480 bytes each. */
const vectors = { small: 19_000, large: 60_000 };
const vectorOf = (random: () => number): string =>
  Buffer.from(Float32Array.from({ length: dims }, () => random() * 2 - 1).buffer).toString('base64');
async function prepareVectors(site: AttackSite): Promise<void> {
  const random = seededRandom(9);
  const count = site.isLarge ? vectors.large : vectors.small;
  for (let from = 0; from < count; from += 5_000) {
    const docs = Array.from({ length: Math.min(5_000, count - from) }, (_, i) => ({
      id: `v${from + i}`,
      vector_b64: vectorOf(random),
      meta: { n: from + i, rare: (from + i) % 97 },
    }));
    await site.prepareDocs('vectors', docs);
  }
}

const embeddingKey = 'sk-attacker-0123456789abcdef';
const flushFile = (at: number) =>
  `a,b\n${Array.from({ length: 50 }, (_, i) => `${i},row ${at} ${i}\n`).join('')}`;
const textRows = { small: 30_000, large: 400_000 };

export const attacksOfTurns: readonly Attack[] = [
  {
    name: 'A17',
    about: 'clients that ask a costly count and go away after 30 ms, again and again',
    prepare: prepareLargeTexts,
    run: (site) => site.loops(12, () => ({ ...costlyCountAsk(), leaveAfterMs: 30 })),
  },
  {
    name: 'A19-import',
    about: 'files that take long to parse and index, from 4 tenants, while neighbours import',
    tenants: 4,
    importsPerSecond: 1,
    secondsMin: 20,
    run(site) {
      const random = seededRandom(11);
      const word = () => Math.floor(random() * 2 ** 48).toString(36);
      const rows = Array.from(
        { length: site.isLarge ? textRows.large : textRows.small },
        (_, i) => `${i},${word()} ${word()} ${word()},"${word()} ""${word()}"" ${word()}"\n`,
      );
      const body = Buffer.from(`k,a,b\n${rows.join('')}`);
      return site.loops(8, (at) => ({
        path: `/v1/namespaces/slow-${at % 2}/import?format=csv&id=k&text=a,b`,
        body,
        tenant: at,
      }));
    },
  },
  {
    name: 'A19-flushes',
    about: 'many small imports, each a segment, and what merges them',
    tenants: 4,
    importsPerSecond: 1,
    run: (site) =>
      site.loops(16, (at) => ({
        path: `/v1/namespaces/many-${at % 40}/import?format=csv&text=b`,
        body: flushFile(at),
        tenant: at,
      })),
  },
  {
    name: 'A19-provider',
    about: 'an embedding provider that never answers, while a neighbour embeds with another one',
    hasHangingProvider: true,
    tenants: 4,
    async prepare(site) {
      for (let tenant = 0; tenant < site.tenants; tenant++) {
        const key = JSON.stringify({ key: embeddingKey });
        await site.prepare({ method: 'PUT', path: '/v1/embedding-keys/openai', body: key, tenant });
        const made = JSON.stringify({ name: 'slow', embed: { provider: 'openai' } });
        await site.prepare({ path: '/v1/namespaces', body: made, tenant });
      }
    },
    run: (site) =>
      site.loops(60, (at) =>
        at % 2 === 0
          ? search('slow', { semantic: `question ${at}` }, at >> 1)
          : {
              path: '/v1/namespaces/slow/docs',
              body: JSON.stringify({ docs: [{ id: `d${at}`, text: `text ${at}` }] }),
              tenant: at >> 1,
            },
      ),
  },
  {
    name: 'A20-warm',
    about: 'warm with 20 empty queries, over 1,000 namespaces of 4 tenants',
    tenants: 4,
    prepare: prepareMany,
    run: (site) =>
      site.loops(16, (at) => ({
        path: `/v1/namespaces/n${at % manyNamespaces}/warm`,
        body: JSON.stringify({ queries: new Array<string>(20).fill('') }),
        tenant: at % manyNamespaces,
      })),
  },
  {
    name: 'A20-touch',
    about: '1,000 namespaces of 4 tenants searched in turn',
    tenants: 4,
    prepare: prepareMany,
    run: (site) =>
      site.loops(16, (at) => search(`n${at % manyNamespaces}`, { q: 'tide', limit: 5 }, at % manyNamespaces)),
  },
  {
    name: 'A21',
    about: 'limit 1000 by vector, with a filter that few pass',
    prepare: prepareVectors,
    run(site) {
      const random = seededRandom(13);
      return site.loops(8, (at) =>
        search('vectors', {
          vector: Array.from({ length: dims }, () => random() * 2 - 1),
          filter: { rare: at % 97 },
          limit: 1_000,
        }),
      );
    },
  },
  {
    name: 'A22',
    about: 'deletes of 10,000 ids, past quota and allowance',
    prepare: (site) => site.prepareDocs('deleted', [{ id: 'a', text: 'tide' }]),
    run: (site) =>
      site.loops(8, (at) => ({
        path: '/v1/namespaces/deleted/delete',
        body: JSON.stringify({ ids: Array.from({ length: 10_000 }, (_, i) => `${at}-${i}`) }),
      })),
  },
];
