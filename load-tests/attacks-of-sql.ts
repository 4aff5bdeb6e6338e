import { seededRandom } from '../test/support/segments.ts';
import type { Attack } from './attack.ts';
import type { Ask, AttackSite } from './attack-site.ts';

/** Patterns, LIKE, replacements and memory: what one statement or one regex can ask for. */
const sql = (namespace: string, statement: string, tenant = 0): Ask => ({
  path: `/v1/namespaces/${namespace}/sql`,
  body: JSON.stringify({ sql: statement }),
  tenant,
});
const replaced = (pattern: string, by = 'x', of = 's') => `REGEXP_REPLACE(${of}, '${pattern}', '${by}')`;

const random = seededRandom(3);
const letters = (count: number): string =>
  Array.from({ length: count }, () => (random() < 0.5 ? 'a' : 'b')).join('');

const hardDocuments = 200;
const hardBytes = 16_000;
async function prepareHard(site: AttackSite): Promise<void> {
  const docs = Array.from({ length: hardDocuments }, (_, i) => ({
    id: `d${i}`,
    text: '-',
    meta: { s: letters(hardBytes) },
  }));
  await site.prepareDocs('hard', docs);
}

const manyOptions = '(?:a?){999}(?:b?){999}(?:a?){999}(?:b?){999}c';
const twice = { clients: 2 };

const costlyCount = 'a[ab]{900}c';
/** All that the index asks of a text with the regex above. */
const ends = ' aaac abac baac bbac aabc abbc babc bbbc';
const largeTexts = 4;
const largeTextBytes = 1_900_000;
export async function prepareLargeTexts(site: AttackSite): Promise<void> {
  const docs = Array.from({ length: largeTexts }, (_, i) => ({
    id: `x${i}`,
    text: letters(largeTextBytes) + ends,
  }));
  await site.prepareDocs('large', docs);
}
export const costlyCountAsk = (tenant = 0): Ask => ({
  path: '/v1/namespaces/large/count',
  body: JSON.stringify({ q: costlyCount, regex: true, scan: true }),
  tenant,
});

const groupTenants = 20;
/** A row takes 180 bytes of the quota; 1 % of the free plan's are 10 MB. */
const groupRows = { small: 40_000, large: 150_000 };
async function prepareGroups(site: AttackSite): Promise<void> {
  const word = () => Math.floor(random() * 2 ** 48).toString(36);
  const rows = Array.from(
    { length: site.isLarge ? groupRows.large : groupRows.small },
    (_, i) => `${i},${word()},${word()},${word()},${word()},${word()},${word()},${word()}\n`,
  );
  const body = Buffer.from(`k,a,b,c,d,e,f,g\n${rows.join('')}`);
  for (let tenant = 0; tenant < site.tenants; tenant++)
    await site.prepare({ path: '/v1/namespaces/groups/import?format=csv&id=k', body, tenant });
}

const sums = 15;
const termsOfSum = 100;
const timesAsked = 250;
/** Each alias stands for hundreds of nodes, and is asked for hundreds of times. */
const manyNodes = [
  `SELECT COUNT(*), ${Array.from({ length: sums }, (_, i) => `${Array.from({ length: termsOfSum }, (_, term) => (term % 2 === 0 ? 'k' : `${i + term}`)).join(' + ')} AS x${i}`).join(', ')}`,
  `FROM docs GROUP BY ${Array.from({ length: sums }, (_, i) => `x${i}`).join(', ')}`,
  `HAVING ${new Array<string>(timesAsked).fill('x0').join(' + ')} > 0`,
  `ORDER BY ${Array.from({ length: sums - 1 }, (_, i) => `x${i} + x${i + 1}`).join(', ')} LIMIT 10`,
].join(' ');
const manyBranches = `SELECT COUNT(*), CASE ${Array.from({ length: 800 }, (_, i) => `WHEN a LIKE '%${i}_${i}%' THEN b`).join(' ')} ELSE c END AS x FROM docs GROUP BY x`;
const manyGroups = [
  'SELECT a, b, c, d, COUNT(*), COUNT(DISTINCT e), COUNT(DISTINCT f), COUNT(DISTINCT g) FROM docs GROUP BY a, b, c, d ORDER BY a',
  'SELECT COUNT(DISTINCT a), COUNT(DISTINCT b), COUNT(DISTINCT c), COUNT(DISTINCT d), COUNT(DISTINCT e), COUNT(DISTINCT f) FROM docs',
  'SELECT a, b, c, d, e, f, g FROM docs ORDER BY g, f, e LIMIT 10000',
  "SELECT REGEXP_REPLACE(a, '.', '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0') AS x, COUNT(DISTINCT b) FROM docs GROUP BY x",
];

export const attacksOfSql: readonly Attack[] = [
  {
    name: 'A1-options',
    about: 'REGEXP_REPLACE with nested optional repetitions over 200 strings of 16 KB',
    prepare: prepareHard,
    run: (site) =>
      site.loops(twice.clients, () => sql('hard', `SELECT MAX(${replaced(manyOptions)}) FROM docs`)),
  },
  {
    name: 'A1-repeats',
    about: 'REGEXP_REPLACE with (a|b|ab)*([ab]{200})c over 200 strings of 16 KB',
    prepare: prepareHard,
    run: (site) =>
      site.loops(twice.clients, () =>
        sql('hard', `SELECT MAX(${replaced('(a|b|ab)*([ab]{200})c')}) FROM docs`),
      ),
  },
  {
    name: 'A1-like',
    about: 'LIKE with %_, 500 a and b% over 1,600 rows',
    async prepare(site) {
      const s = 'a'.repeat(site.isLarge ? 16_000 : 5_500);
      const docs = Array.from({ length: 1_600 }, (_, i) => ({ id: `l${i}`, text: '-', meta: { s } }));
      await site.prepareDocs('like', docs.slice(0, 800));
      await site.prepareDocs('like', docs.slice(800));
    },
    run: (site) =>
      site.loops(twice.clients, () =>
        sql('like', `SELECT COUNT(*) FROM docs WHERE s LIKE '%_${'a'.repeat(500)}b%'`),
      ),
  },
  {
    name: 'A3',
    about: '15 counts at once with a[ab]{900}c over texts of 2 MB',
    prepare: prepareLargeTexts,
    run: (site) => site.loops(15, () => costlyCountAsk()),
  },
  {
    name: 'A5',
    about: '9 refused patterns a second, each another one',
    prepare: (site) =>
      site.prepareDocs('small', [{ id: 'x', text: letters(20_000) + ends, meta: { s: 'a' } }]),
    run: (site) =>
      site.paced(9, (at) => {
        const q = `${'\\pL'.repeat(300)}${at}`;
        const body = JSON.stringify({ q, regex: true });
        const asks: readonly Ask[] = [
          { path: '/v1/namespaces/small/search', body },
          { path: '/v1/namespaces/small/count', body },
          sql('small', `SELECT COUNT(*) FROM docs WHERE grep(text, '${q}')`),
          sql('small', `SELECT ${replaced(q)} FROM docs`),
        ];
        return asks[at % asks.length] ?? { path: '/' };
      }),
  },
  {
    name: 'A14',
    about: 'REGEXP_REPLACE whose output would be gigabytes',
    isMemoryJudged: true,
    prepare: prepareHard,
    run: (site) =>
      site.loops(twice.clients, (at) => {
        const grown = replaced('a', '\\0'.repeat(120));
        const more = replaced('(?s).*', '\\0'.repeat(500), grown);
        const statements = [
          `SELECT MAX(${more}) FROM docs`,
          `SELECT ${grown} AS x, COUNT(*) FROM docs GROUP BY x`,
          `SELECT ${replaced('', 'x'.repeat(120))} FROM docs`,
        ];
        return sql('hard', statements[at % statements.length] ?? '');
      }),
  },
  {
    name: 'A15-groups',
    about: 'SQL with many groups and distinct values, two statements of each of 20 tenants',
    isMemoryJudged: true,
    tenants: groupTenants,
    secondsMin: 30,
    prepare: prepareGroups,
    run: (site) =>
      site.loops(2 * site.tenants, (at) =>
        sql('groups', manyGroups[Math.floor(at / site.tenants) % manyGroups.length] ?? '', at),
      ),
  },
  {
    name: 'A15-nodes',
    about:
      'SQL with aliases of hundreds of nodes asked for hundreds of times, and 800 CASE branches with LIKE',
    isMemoryJudged: true,
    tenants: 4,
    prepare: prepareGroups,
    run: (site) => site.loops(8, (at) => sql('groups', at % 2 === 0 ? manyNodes : manyBranches, at)),
  },
];
