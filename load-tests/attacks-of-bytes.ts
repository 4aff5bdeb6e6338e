import type { Attack } from './attack.ts';
import type { Ask, AttackSite, Held } from './attack-site.ts';

/** Bodies, files and answers: what the server has to hold, parse or write for somebody. */
const docsPath = (namespace: string) => `/v1/namespaces/${namespace}/docs`;
const megabyte = 1e6;

/** Nests, and means nothing. */
function junk(bytes: number): string {
  const piece = '{"x":[{},{},{},{},{},{},{},{}]},';
  return `[${piece.repeat(Math.floor(bytes / piece.length) - 1)}{}]`;
}
const junkMegabyte = junk(megabyte);
/** As much as an operation without credentials may send. */
const junkSmall = junk(15_000);

const stalled = (path: string, at: number, bodyBytes: number, sentBytes: number): Held => ({
  path,
  tenant: at,
  bodyBytes,
  sentBytes,
});

const importPath = '/v1/namespaces/files/import?format=csv';
/** Half of them declare what a quota of 10 MB lets in. */
const fileBytes = (at: number) => (at % 2 === 0 ? 1_900 : 8) * megabyte;
const sentOfFile = (at: number) => (at % 2 === 0 ? 50 : 4) * megabyte;
const fewUploads = 8;
const manyUploads = 40;

const answered = { small: 4, large: 30 };
async function prepareTexts(site: AttackSite): Promise<void> {
  const count = site.isLarge ? answered.large : answered.small;
  for (let tenant = 0; tenant < site.tenants; tenant++) {
    const docs = Array.from({ length: count }, (_, i) => ({
      id: `t${i}`,
      text: `tide ${'x'.repeat(1.9 * megabyte)}`,
    }));
    await site.prepareDocs('texts', docs, tenant);
  }
}

const patches = 10_000;
const writesOfSixty = 30;

export const attacksOfBytes: readonly Attack[] = [
  {
    name: 'A2-stall',
    about: '64 bodies of 66 MB from 4 tenants that stall when 60 MB have come',
    tenants: 4,
    secondsMin: 30,
    isMemoryJudged: true,
    run: (site) => site.hold(64, (at) => stalled(docsPath('bodies'), at, 66 * megabyte, 60 * megabyte)),
  },
  {
    name: 'A2-trickle',
    about: '64 bodies of 66 MB from 4 tenants that come at 20 KB a second',
    tenants: 4,
    secondsMin: 30,
    isMemoryJudged: true,
    run: (site) =>
      site.hold(64, (at) => ({
        ...stalled(docsPath('bodies'), at, 66 * megabyte, 300_000),
        trickleBytesPerSecond: 20_000,
      })),
  },
  {
    name: 'A4-large',
    about: '12 logins a second with 1 MB of nested junk, without credentials',
    isHealthJudged: true,
    run: (site) => site.paced(12, () => ({ path: '/v1/login', body: junkMegabyte, tenant: null })),
  },
  {
    name: 'A4-small',
    about: '200 logins a second with 15 KB of nested junk, without credentials',
    isHealthJudged: true,
    run: (site) => site.paced(200, () => ({ path: '/v1/login', body: junkSmall, tenant: null })),
  },
  {
    name: 'A7-8',
    about: `${fewUploads} uploads from 4 tenants that stall, while neighbours import`,
    tenants: 4,
    importsPerSecond: 1,
    secondsMin: 20,
    run: (site) => site.hold(fewUploads, (at) => stalled(importPath, at, fileBytes(at), sentOfFile(at))),
  },
  {
    name: 'A7-40',
    about: `${manyUploads} uploads from 4 tenants that stall, while neighbours import`,
    tenants: 4,
    importsPerSecond: 1,
    secondsMin: 20,
    run: (site) => site.hold(manyUploads, (at) => stalled(importPath, at, fileBytes(at), sentOfFile(at))),
  },
  {
    name: 'A8',
    about: 'answers of 57 MB (8 MB with the built-in plans) to 40 clients that read slowly or never',
    tenants: 4,
    secondsMin: 30,
    isMemoryJudged: true,
    prepare: prepareTexts,
    run: (site) =>
      site.hold(40, (at) => ({
        path: '/v1/namespaces/texts/search',
        tenant: at,
        bodyBytes: 0,
        sentBytes: 0,
        body: JSON.stringify({ q: 'tide', limit: answered.large, include: ['text'] }),
        readBytesPerSecond: at % 4 === 0 ? 64_000 : 0,
      })),
  },
  {
    name: 'A13',
    about: '10,000 tiny patches of one document of 2 MB in each request',
    isMemoryJudged: true,
    prepare: (site) => site.prepareDocs('patched', [{ id: 'big', text: 'tide '.repeat(390_000), meta: {} }]),
    run: (site) =>
      site.loops(2, (at) => {
        const docs = Array.from({ length: patches }, (_, i) => ({
          id: 'big',
          meta: { n: at * patches + i },
        }));
        return { method: 'PATCH', path: docsPath('patched'), body: JSON.stringify({ docs }) };
      }),
  },
  {
    name: 'A16',
    about: '1 MB of junk JSON with a key, 90 a second',
    prepare: (site) => site.prepareDocs('junk', [{ id: 'a', text: 'tide' }]),
    run(site) {
      const asks: readonly Ask[] = [
        { path: '/v1/namespaces/junk/search', body: `{"q":"tide","filter":${junkMegabyte}}` },
        { path: docsPath('junk'), body: `{"docs":${junkMegabyte}}` },
        { path: '/v1/namespaces/junk/sql', body: junkMegabyte },
        { path: '/v1/namespaces/junk/count', body: `{"filter":{"x":${junkMegabyte}}}` },
        { path: '/v1/keys', body: `{"name":"k","namespaces":${junkMegabyte}}` },
      ];
      return site.paced(90, (at) => asks[at % asks.length] ?? { path: '/' });
    },
  },
  {
    name: 'A18',
    about: 'two namespaces of each of 4 tenants write bodies of 60 MB as fast as they can',
    tenants: 4,
    secondsMin: 20,
    run(site) {
      const docs = Array.from({ length: writesOfSixty }, (_, i) => ({
        id: `w${i}`,
        text: `${i} ${'tide water '.repeat(181_000)}`,
      }));
      const body = Buffer.from(JSON.stringify({ docs }));
      return site.loops(2 * site.tenants, (at) => ({
        path: docsPath(`flood-${Math.floor(at / site.tenants) % 2}`),
        body,
        tenant: at,
      }));
    },
  },
];
