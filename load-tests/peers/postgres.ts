import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sleep } from '../judge.ts';
import { peerPackages } from '../peer-packages.ts';
import { temporaryFolder } from '../server.ts';
import { conditionsOf } from './duckdb.ts';
import { NotHere, type Peer, type Question, unasked } from './peer.ts';

const startMsMax = 30_000;
const client = 'pg@8.16.3';
const programs = '/usr/lib/postgresql';
const rowsAtOnce = 1_000;

/** The part of the client that is used. */
interface Client {
  connect(): Promise<void>;
  query(
    sql: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
  end(): Promise<void>;
}

export const postgres: Peer = {
  name: 'PostgreSQL',
  about:
    'by its socket, default settings; pg_trgm over texts, B-trees of level and of host with status; no vectors',
  async open({ rows }) {
    const { child, folder } = await start();
    const sql = await connected(folder);
    const close = async () => {
      await sql.end();
      const ended = once(child, 'exit');
      child.kill('SIGQUIT');
      await ended;
    };
    await sql.query('CREATE EXTENSION pg_trgm');
    await sql.query(
      'CREATE TABLE docs (id text PRIMARY KEY, text text, level text, host text, status int, took_ms float8)',
    );
    for (let from = 0; from < rows.length; from += rowsAtOnce)
      await sql.query(
        'INSERT INTO docs SELECT * FROM json_to_recordset($1) AS r(id text, text text, level text, host text, status int, took_ms float8)',
        [JSON.stringify(rows.slice(from, from + rowsAtOnce))],
      );
    await sql.query('CREATE INDEX ON docs USING gin (text gin_trgm_ops)');
    await sql.query('CREATE INDEX ON docs (host, status)');
    await sql.query('CREATE INDEX ON docs (level)');
    await sql.query('VACUUM ANALYZE docs');
    const [version] = (await sql.query('SHOW server_version')).rows;
    return {
      version: String(version?.server_version).split(' ')[0] ?? '',
      kinds: ['rare', 'word', 'regex', 'filter', 'both', 'groups'],
      async ask(question: Question) {
        if (question.kind === 'groups') {
          const found = await sql.query('SELECT host, COUNT(*) AS n FROM docs GROUP BY host');
          return found.rows.map(({ host, n }) => `${host} ${n}`).sort();
        }
        if (question.vector !== undefined) unasked(question);
        const wanted = conditionsOf(question, {
          contains: (value) => `text LIKE '%' || ${value} || '%'`,
          matches: (value) => `text ~ ${value}`,
        });
        const [row] = (await sql.query(`SELECT COUNT(*) AS n FROM docs WHERE ${wanted}`)).rows;
        return Number(row?.n);
      },
      close,
    };
  },
};

/** It refuses to run as root: then it is Debian's user `postgres` that runs it. */
async function start(): Promise<{ readonly child: ChildProcess; readonly folder: string }> {
  const [newest] = existsSync(programs) ? readdirSync(programs).sort().reverse() : [];
  const bin = join(programs, newest ?? 'none', 'bin');
  if (!existsSync(join(bin, 'postgres')))
    throw new NotHere('PostgreSQL is not installed: apt-get install postgresql');
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const as = asOther(folder);
  const made = spawnSync(
    ...commandOf(as, join(bin, 'initdb'), [
      '-D',
      data,
      '-U',
      'peer',
      '-A',
      'trust',
      '-E',
      'UTF8',
      '--locale=C',
      '-N',
    ]),
    {
      encoding: 'utf8',
    },
  );
  if (made.status !== 0) throw new NotHere(`PostgreSQL made no database: ${made.stderr.slice(0, 200)}`);
  const child = spawn(
    ...commandOf(as, join(bin, 'postgres'), ['-D', data, '-k', folder, '-c', 'listen_addresses=']),
    {
      stdio: 'ignore',
    },
  );
  process.once('exit', () => child.kill('SIGQUIT'));
  for (const until = performance.now() + startMsMax; performance.now() < until; await sleep(100))
    if (existsSync(join(folder, '.s.PGSQL.5432'))) return { child, folder };
  child.kill('SIGQUIT');
  throw new NotHere('PostgreSQL did not start on this machine');
}

/** The user and group that a server runs as in place of root, to whom the folder is given; null where this is not root. */
function asOther(folder: string): readonly [user: number, group: number] | null {
  if (process.getuid?.() !== 0) return null;
  try {
    const id = (kind: string) => Number(execFileSync('id', [kind, 'postgres'], { encoding: 'utf8' }));
    const ids = [id('-u'), id('-g')] as const;
    chownSync(folder, ...ids);
    // The way to it.
    if (tmpdir() !== '/tmp') chmodSync(tmpdir(), 0o711);
    return ids;
  } catch {
    throw new NotHere('PostgreSQL does not run as root, and there is no user postgres');
  }
}

function commandOf(
  as: readonly [number, number] | null,
  program: string,
  words: readonly string[],
): [string, string[]] {
  if (as === null) return [program, [...words]];
  return ['setpriv', [`--reuid=${as[0]}`, `--regid=${as[1]}`, '--clear-groups', program, ...words]];
}

async function connected(folder: string): Promise<Client> {
  try {
    const modules = await peerPackages('postgres', [client]);
    const loaded = (await import(pathToFileURL(join(modules, 'pg/lib/index.js')).href)) as {
      readonly default: { readonly Client: new (options: object) => Client };
    };
    const sql = new loaded.default.Client({ host: folder, user: 'peer', database: 'postgres' });
    await sql.connect();
    return sql;
  } catch (error) {
    throw new NotHere(`PostgreSQL's client can't be had: ${String(error).slice(0, 200)}`);
  }
}
