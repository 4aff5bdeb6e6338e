/** The measurements and the long proofs, by the names that `npm run measure` and `npm run prove` know them by. */

/** One program that Node starts in the repository's folder. */
export interface Step {
  /** Node's arguments: the compiled file, with what stands before and behind it. */
  readonly program: readonly string[];
  /** Values that hold where the environment of whoever starts it has none. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Command {
  readonly name: string;
  /** One line for the list. */
  readonly about: string;
  /** About how long it takes on two cores. */
  readonly takes: string;
  readonly steps: readonly Step[];
  /** The variables that say how much is done, for tests of the suite, which take no options. */
  readonly settings?: string;
}

/** A program of this folder. */
function ownProgram(name: string, takes: string, about: string): Command {
  return { name, takes, about, steps: [{ program: [`dist/load-tests/${name}.js`] }] };
}

/** Tests of the suite that take more turns. `s3` gives them an S3 server of their own. */
function testStep(
  files: readonly string[],
  env: Readonly<Record<string, string>>,
  { s3 = false, options = [] }: { readonly s3?: boolean; readonly options?: readonly string[] } = {},
): Step {
  const tests = ['--test', ...options, ...files.map((file) => `dist/test/${file}.test.js`)];
  return { env, program: s3 ? ['dist/test/support/with-s3.js', 'node', ...tests] : tests };
}

/** What `npm run measure -- NAME` knows: each prints figures of this machine, with their bars. */
export const measurements: readonly Command[] = [
  ownProgram('bench', '2 min', 'the promised speeds, beside a bare server on this machine; needs wrk'),
  ownProgram('attacks', '1 h', 'each attack of one account beside neighbours; --list, --only=A1, --mix'),
  ownProgram('ingest', '2 min', 'documents in, MB/s, with reads beside them'),
  ownProgram('puts', '8 min', 'PUTs a second of 1,000 tenants with small writes'),
  ownProgram('idle', '5 min', 'what a server that nobody asks anything costs'),
  ownProgram('stored-bytes', '2 min', 'what source code and prose take in the store'),
  ownProgram('cold', '3 min', 'first read and first search over a far S3 server'),
  ownProgram(
    'branches',
    '4 min',
    'a branch of 1,000 documents and of 4,000,000, while both are written to; --far',
  ),
  ownProgram('restart', '3 min', 'from kill -9 with 1 GB stored to the first read'),
  ownProgram('many-namespaces', '15 min', 'more data than memory: 10,000 namespaces in turn, 300 large ones'),
  ownProgram('text-speed', '5 min', 'searches over real source code, beside rg and csearch'),
  ownProgram('text-pairs', '6 min', 'the same searches by this build and another one, both at once'),
  ownProgram('log-lines', '5 min', 'a million log lines in one namespace'),
  ownProgram(
    'filter-speed',
    '5 min',
    'filters, counts and estimates over a million lines with metas, beside ripgrep and DuckDB',
  ),
  ownProgram('cold-search', '5 min', 'first searches by new processes over a far S3 server'),
  ownProgram('fairness', '3 min', 'reads beside scans without end on the same thread'),
  ownProgram(
    'front-limits',
    '3 min',
    'three times the limit, refusals a second, 200 people logging in; needs wrk',
  ),
  ownProgram(
    'mcp-speed',
    '2 min',
    'tool calls beside the same search over REST, and the SDKs’ servers; needs wrk',
  ),
  ownProgram(
    'forwarded',
    '2 min',
    'a warm read through another server beside one through its owner: processor time and latency; needs wrk',
  ),
  ownProgram('agent-day', '2 min', '30 questions to the kernel’s sources, answered by tool calls alone'),
  ownProgram('vectors', '5 min', 'recall, filters and speed of searches by vectors, beside LanceDB'),
  ownProgram(
    'peers',
    '5 min',
    'the same rows and questions to ripgrep, csearch, DuckDB, LanceDB, Chroma and PostgreSQL',
  ),
  ownProgram('semantic', '3 min', 'questions that find paraphrases, by the built-in model'),
  ownProgram('sql-speed', '3 min', '43 questions to a table of 105 columns, beside DuckDB'),
  ownProgram('import-speed', '2 min', 'a million rows of CSV, NDJSON and Parquet'),
  {
    name: 'view-change',
    takes: '6 min',
    about: 'a join, an eviction and a leave of 10 and 50 servers beside a million idle namespaces, simulated',
    steps: [{ program: ['dist/test/simulation/view-change.js'] }],
  },
  {
    name: 'big-segment',
    takes: '3 min',
    about: 'segments merged to one of 2 GB: how fast, and in how much memory',
    steps: [{ program: ['--expose-gc', 'dist/test/bench/big-segment.bench.js'] }],
  },
];

/** What `npm run load` starts; it knows its scenarios by itself. */
export const loadTests: Command = ownProgram(
  'load/run-load',
  '100 min',
  'every kind of request under load, and one page of all results',
);

/** What `npm run prove -- NAME` knows: each ends with 1 where one answer was wrong. */
export const proofs: readonly Command[] = [
  ownProgram('fuzz', '10 min', '100,000 requests to operations, tools and OAuth: each answered as promised'),
  ownProgram('mcp-conformance', '1 min', 'the protocol’s own suite, against /mcp and OAuth, for both eras'),
  ownProgram('mcp-inspector', '1 min', 'its Inspector’s command line lists and calls all tools'),
  ownProgram('other-node', '10 min', 'the end-to-end tests on another Node than this one'),
  ownProgram('text-exactness', '30 min', 'searches of three corpora against RE2 run over all of their texts'),
  ownProgram('real-input', '1 min', 'every count of 5,000 and more real files against ripgrep'),
  {
    name: 'sql-oracle',
    takes: '2 min',
    about: "20,000 random statements, whose answers must be DuckDB's",
    settings: 'SQL_QUERIES',
    steps: [testStep(['actors/search/sql/sql-oracle'], { SQL_QUERIES: '20000' })],
  },
  {
    name: 'loops',
    takes: '2 min',
    about:
      'random patterns, replacements, histories of subscriptions, damaged Parquet files and segments, of which the suite tries some',
    settings: 'PIECE_ROUNDS, REPLACE_ROUNDS, BILLING_HISTORIES and PARQUET_DAMAGES',
    steps: [
      testStep(
        [
          'actors/text/match-pieces',
          'actors/text/replace-matches',
          'actors/import/parquet',
          'actors/storage/segment',
          'src/billing/subscriptions',
        ],
        {
          PIECE_ROUNDS: '6000',
          REPLACE_ROUNDS: '6000',
          BILLING_HISTORIES: '2000',
          PARQUET_DAMAGES: '400',
          SEGMENT_BYTES: 'all',
        },
      ),
    ],
  },
  {
    name: 'parquet-files',
    takes: '20 s',
    about: 'what becomes of each Parquet file of a folder, beside what DuckDB reads',
    settings: 'PARQUET_FILES, the folder',
    steps: [{ program: ['dist/load-tests/parquet-files.js'] }],
  },
  {
    name: 'crash',
    takes: '10 min',
    about: '100 rounds of kill -9 under writes on a folder, 50 on an S3 server',
    settings: 'CRASH_ROUNDS',
    steps: [
      testStep(['end-to-end/crash'], { CRASH_ROUNDS: '100' }),
      testStep(
        ['end-to-end/crash'],
        { CRASH_STORE: 's3', CRASH_ROUNDS: '50' },
        { s3: true, options: ['--test-name-pattern=kill'] },
      ),
    ],
  },
  {
    name: 'outages',
    takes: '5 min',
    about: 'an S3 server that is away, hangs, forgets or throttles',
    settings: 'OUTAGES',
    steps: [testStep(['end-to-end/outages'], { OUTAGES: 'long' }, { s3: true })],
  },
  {
    name: 'corruptions',
    takes: '10 min',
    about: '300 damaged cache files, 100 damaged objects in a folder and 100 on an S3 server',
    settings: 'CORRUPT_CACHE and CORRUPT_OBJECTS',
    steps: [
      testStep(
        ['end-to-end/corrupt-cache', 'end-to-end/corrupt-objects'],
        { CORRUPT_CACHE: '300', CORRUPT_OBJECTS: '100' },
        { options: ['--test-concurrency=1'] },
      ),
      testStep(['end-to-end/corrupt-objects'], { CORRUPT_S3: '1', CORRUPT_OBJECTS: '100' }, { s3: true }),
    ],
  },
  {
    name: 'usage',
    takes: '2 min',
    about: '10,000 operations with three kills: usage is what is found',
    settings: 'USAGE_OPERATIONS',
    steps: [testStep(['end-to-end/usage'], { USAGE_OPERATIONS: '10000' })],
  },
  {
    name: 'backup',
    takes: '8 min',
    about: 'a backup of 2 GB under writes, ended by kill -9 and gone on with, restored elsewhere, damaged',
    settings: 'BACKUP_MB',
    steps: [testStep(['end-to-end/backup'], { BACKUP_MB: '2000' })],
  },
  {
    name: 'cluster',
    takes: '3 h',
    about:
      'three servers on a folder and on S3 under load: leaves, joins, kill -9, a supervisor, pauses, cuts, S3 away',
    settings:
      'CLUSTER_ROUNDS, CLUSTER_FAULT, CLUSTER_STORE, CLUSTER_SEED, CLUSTER_LOGS, CLUSTER_SERVER_CORES',
    steps: [
      testStep(
        ['end-to-end/cluster'],
        { CLUSTER_ROUNDS: '20' },
        { s3: true, options: ['--test-name-pattern=times'] },
      ),
    ],
  },
  {
    name: 'balancer',
    takes: '5 min',
    about: 'three servers on an S3 server behind HAProxy, restarted one after another under reads and writes',
    settings: 'BALANCER_ROUNDS',
    steps: [testStep(['end-to-end/balancer'], { BALANCER_ROUNDS: '7' }, { s3: true })],
  },
  {
    name: 'revocation',
    takes: '1 min',
    about:
      'keys, logins, connections and tenants that end on three servers: 1,000 requests after each answer',
    settings: 'REVOCATION_REQUESTS, REVOCATION_ROUNDS',
    steps: [testStep(['end-to-end/revocation'], { REVOCATION_REQUESTS: '1000', REVOCATION_ROUNDS: '20' })],
  },
  {
    name: 'cluster-model',
    takes: '3 min',
    about: 'several servers on one store: every order of a few views, writes and commits',
    settings: 'TIDEBASE_TEST_CLUSTER_MODEL',
    steps: [testStep(['simulation/cluster-model'], { TIDEBASE_TEST_CLUSTER_MODEL: 'full' })],
  },
  {
    name: 'mutations',
    takes: '2 min',
    about: 'ways to break the commit protocol, each of which the simulation or a test must notice',
    steps: [{ program: ['dist/test/simulation/run-mutations.js'] }],
  },
];
