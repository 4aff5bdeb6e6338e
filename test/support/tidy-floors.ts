/**
 * The house as the rules know it, from the ground up. The two sides stand on shared ground and never import each other:
 * what crosses a thread is what is written in protocol/.
 */
import type { Entries, Side } from './tidy-rules.ts';

const ground = [['protocol', 'src/base'], ['src/object-store'], ['src/accounts', 'src/stored']] as const;

/** What runs in a browser knows nothing of the server but its public interface. */
export const browser = 'src/front/console/browser';

/** AssemblyScript, which another compiler reads, and which imports nothing but itself. */
export const assembly = 'actors/kernels/assembly';

export const sides: readonly Side[] = [
  { name: 'words', floors: [['protocol']], owns: ['protocol'] },
  {
    name: 'browser',
    owns: [browser],
    floors: [[browser], [`${browser}/views`], [`${browser}/main.ts`]],
  },
  {
    name: 'front',
    owns: ['src'],
    floors: [
      ...ground,
      ['src/identity'],
      ['src/oauth'],
      ['src/billing'],
      ['src/auth'],
      ['src/peers'],
      ['src/cluster'],
      ['src/backup'],
      ['src/router'],
      ['src/front'],
      ['src/settings-values.ts'],
      ['src/settings-peers.ts'],
      ['src/settings.ts'],
      ['src/store-settings.ts'],
      ['src/server-threads.ts'],
      ['src/server-billing.ts'],
      ['src/server-front.ts'],
      ['src/server-oauth.ts'],
      ['src/server-cluster.ts'],
      ['src/server.ts'],
      ['src/cli'],
      ['src/main.ts'],
      [browser],
    ],
  },
  {
    name: 'worker',
    owns: ['actors'],
    floors: [
      ...ground,
      [assembly],
      ['actors/kernels'],
      ['actors/thread'],
      ['actors/storage'],
      ['actors/columns'],
      ['actors/text', 'actors/vector', 'actors/sql'],
      // SQL's stages, from what a statement says to its answer.
      ['actors/sql/parse'],
      ['actors/sql/plan'],
      ['actors/sql/frame'],
      ['actors/sql/intern'],
      ['actors/sql/expression'],
      ['actors/sql/group'],
      ['actors/sql/run'],
      ['actors/search', 'actors/import', 'actors/embedding'],
      ['actors/compute'],
      ['actors/log'],
      ['actors/actor'],
      ['actors/namespace', 'actors/tenant'],
      ['actors/host'],
      ['actors/worker.ts'],
    ],
  },
];

/**
 * Units that must not know others although the floors would let them. The object store is ground without product words: it
 * does not even know the protocol. SQL's stages lie above the other engines, and no engine knows another.
 */
export const strangers = [
  ['src/object-store', 'protocol'],
  ['actors/sql', 'actors/text'],
  ['actors/sql', 'actors/vector'],
] as const;

/** Stored shapes have files of their own, apart from what crosses threads. */
export const storedShapes = {
  durable: 'src/base/record.ts',
  messages: ['protocol/messages.ts'],
  shapes: 'protocol/stored-',
} as const;

/** The folders whose doc comments each begin with what the thing is. */
export const roomsOfWholeComments = ['protocol', 'src', 'actors', 'test', 'load-tests'] as const;

/** The folders in which no essay of a file stands on its first constant or type. */
export const roomsOfPlacedEssays = ['protocol', 'src', 'actors', 'test', 'load-tests'] as const;

/** The few files of more than 500 lines: each is one class or one scanner, whose parts share too much state to lie apart. */
export const longFiles: ReadonlySet<string> = new Set([
  'actors/host/actor-host.ts',
  'actors/storage/block-fetch.ts',
  'actors/storage/parse-write.ts',
  'actors/storage/warm-cache.ts',
]);

export const entries: Entries = new Map([
  [`${browser}/main.ts`, 'the pages, named in src/front/console/document.ts'],
  [`${assembly}/find-rows.ts`, 'kernel, named by the build in package.json'],
  [`${assembly}/frame-numbers.ts`, 'kernel, named by the build in package.json'],
  [`${assembly}/pair-table.ts`, 'kernel, named by the build in package.json'],
  [`${assembly}/csv-documents.ts`, 'kernel, named by the build in package.json'],
  [`${assembly}/row-ends.ts`, 'kernel, named by the build in package.json'],
  [`${assembly}/sha256.ts`, 'kernel, named by the build in package.json'],
  [`${assembly}/find-piece.ts`, 'imported by find-rows.ts, without an ending as AssemblyScript wants it'],
  [`${assembly}/csv-fields.ts`, 'imported by csv-documents.ts, without an ending as AssemblyScript wants it'],
  ['actors/worker.ts', 'thread, named in src/router/worker-pool.ts'],
  ['actors/log/log-worker.ts', 'thread, named in src/router/worker-pool.ts'],
  ['actors/compute/compute-worker.ts', 'thread, named in src/router/worker-pool.ts'],
  ['actors/compute/hash-worker.ts', 'thread, named in src/router/worker-pool.ts'],
  ['actors/sql/plan/plan-text.ts', 'plans for people: golden tests, and whoever wonders'],
  ['src/object-store/memory-object-store.ts', 'the exact twin that tests use'],
]);

/** Dependencies that are run and never imported: `npm start` compiles. */
export const programs = ['typescript', 'assemblyscript'];
