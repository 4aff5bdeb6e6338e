import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { freePorts } from '../../test/support/free-ports.ts';
import { sleep } from '../judge.ts';
import { peerPackages } from '../peer-packages.ts';
import { temporaryFolder } from '../server.ts';
import { debianFiles } from './debian-files.ts';
import { NotHere, type Peer, type Question, unasked } from './peer.ts';
import { nearestWanted, type PeerRow, vectorAt } from './peer-corpus.ts';

const version = '3.5.0';
const startMsMax = 30_000;
const rowsAtOnce = 2_000;
const base = '/api/v2/tenants/default_tenant/databases/default_database/collections';
const libraries = 'usr/lib/x86_64-linux-gnu';

export const chroma: Peer = {
  name: 'Chroma',
  about: 'its server, by HTTP; HNSW of vectors',
  async open(corpus) {
    const { child, url } = await start();
    const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const answer = await fetch(`${url}${base}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      if (!answer.ok) throw new Error(`${path}: ${answer.status} ${(await answer.text()).slice(0, 300)}`);
      return (await answer.json()) as Record<string, unknown>;
    };
    const close = async () => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    };
    try {
      const configuration = { hnsw: { space: 'cosine' } };
      const { id } = await post('', { name: 'rows', configuration });
      for (let from = 0; from < corpus.rows.length; from += rowsAtOnce) {
        const rows = corpus.rows.slice(from, from + rowsAtOnce);
        await post(`/${id}/add`, {
          ids: rows.map((row) => row.id),
          embeddings: rows.map((_, at) => vectorAt(corpus, from + at)),
          documents: rows.map(({ text }) => text),
          metadatas: rows.map(metadataOf),
        });
      }
      return {
        version: `${version} of npm`,
        kinds: ['rare', 'word', 'regex', 'filter', 'both', 'nearest'],
        async ask(question: Question) {
          const { kind, text, regex, columns, vector } = question;
          if (kind === 'groups') unasked(question);
          if (vector !== undefined) {
            const asked = {
              query_embeddings: [[...vector]],
              n_results: nearestWanted,
              include: ['distances'],
            };
            const { ids } = (await post(`/${id}/query`, asked)) as { readonly ids: readonly string[][] };
            return ids[0] ?? [];
          }
          const each = Object.entries(columns ?? {}).map(([name, value]) => ({ [name]: value }));
          const { ids } = (await post(`/${id}/get`, {
            include: [],
            ...(text === undefined ? {} : { where_document: { $contains: text } }),
            ...(regex === undefined ? {} : { where_document: { $regex: regex } }),
            ...(each.length === 0 ? {} : { where: each.length === 1 ? each[0] : { $and: each } }),
          })) as { readonly ids: readonly string[] };
          return ids.length;
        },
        close,
      };
    } catch (error) {
      await close();
      throw error;
    }
  },
};

const metadataOf = ({ level, host, status, took_ms }: PeerRow) => ({ level, host, status, took_ms });

/** It wants a newer C library than Debian 12 has: Node runs with Debian 13's, unpacked beside. */
async function start(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const [port = 0] = await freePorts(1);
  const [program, ...before] = await nodeWithLibraries();
  const cli = join(await modulesOf(), 'chromadb/dist/cli.mjs');
  const child = spawn(
    program ?? process.execPath,
    [...before, cli, 'run', '--path', temporaryFolder(), '--port', String(port)],
    { stdio: 'ignore' },
  );
  process.once('exit', () => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  for (const until = performance.now() + startMsMax; performance.now() < until; await sleep(100)) {
    if (child.exitCode !== null) break;
    if ((await fetch(`${url}/api/v2/heartbeat`).catch(() => null))?.ok === true) return { child, url };
  }
  child.kill('SIGKILL');
  throw new NotHere('Chroma’s server did not start on this machine');
}

async function nodeWithLibraries(): Promise<string[]> {
  const { glibcVersionRuntime = '0' } = (
    process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  ).header;
  if (Number(glibcVersionRuntime.split('.')[1]) >= 38) return [process.execPath];
  try {
    const root = await debianFiles('trixie', {
      release: 'trixie',
      packages: ['libc6', 'libstdc++6', 'libgcc-s1'],
    });
    const folder = join(root, libraries);
    return [join(folder, 'ld-linux-x86-64.so.2'), '--library-path', folder, process.execPath];
  } catch (error) {
    throw new NotHere(
      `Chroma wants glibc 2.38, and Debian 13's can't be had: ${String(error).slice(0, 200)}`,
    );
  }
}

async function modulesOf(): Promise<string> {
  try {
    return await peerPackages('chroma', [`chromadb@${version}`]);
  } catch (error) {
    throw new NotHere(`Chroma can't be had: ${String(error).slice(0, 200)}`);
  }
}
