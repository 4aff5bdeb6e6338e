/**
 * Files of the local cache are damaged, under the running server and between its lives. Every answer is the right one; at most the
 * supervisor starts the server once more. CORRUPT_CACHE says how many files (the suite damages a few), CORRUPT_SEED repeats a run, as far
 * as its timing allows.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative } from 'node:path';
import { describe, it } from 'node:test';
import { ApiClient, documentPath } from '../support/api-client.ts';
import {
  appendGarbage,
  DamageTable,
  flipBits,
  type Random,
  randomRange,
  truncate,
  zeroRange,
} from '../support/damage.ts';
import { filesBelow } from '../support/living-folder.ts';
import { seededRandom } from '../support/model.ts';
import { ServerProcess, temporaryFolder } from '../support/server-process.ts';

const wanted = Number(process.env.CORRUPT_CACHE ?? 3);
const seed = Number(process.env.CORRUPT_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** A start takes longer than everything else: the suite damages what runs. */
const betweenShare = wanted > 100 ? 0.4 : 0;
/** Longer than the server takes for anything. */
const answerMsMax = 60_000;
/** Two threads, so that there are two caches to be mistaken for each other. */
const actorThreads = 2;

interface FileDamage {
  readonly name: string;
  /** False where it does not fit the file. */
  readonly apply: (file: string, files: readonly string[], random: Random) => boolean;
}

const ofBytes = [flipBits, truncate, zeroRange, randomRange, appendGarbage].map(
  ({ name, apply }): FileDamage => ({
    name,
    apply(file, _files, random) {
      // In place: whoever has mapped the file sees it.
      writeFileSync(file, apply(readFileSync(file), random), { flag: 'r+' });
      if (name !== truncate.name) return true;
      writeFileSync(file, apply(readFileSync(file), random));
      return true;
    },
  }),
);

const fileDamages: readonly FileDamage[] = [
  ...ofBytes,
  {
    name: 'overwritten meta page',
    apply(file, _files, random) {
      if (basename(file) !== 'data.mdb') return false;
      const bytes = readFileSync(file);
      const page = random() < 0.5 ? 0 : 4096;
      for (let at = page + 16; at < Math.min(page + 200, bytes.length); at++) bytes[at] = random() * 256;
      writeFileSync(file, bytes, { flag: 'r+' });
      return true;
    },
  },
  {
    name: 'swapped bytes with another file',
    apply(file, files, random) {
      const other = files[Math.floor(random() * files.length)] ?? file;
      const [a, b] = [readFileSync(file), readFileSync(other)];
      writeFileSync(file, b);
      writeFileSync(other, a);
      return file !== other;
    },
  },
  {
    name: 'swapped names with another file',
    apply(file, files, random) {
      const other = files[Math.floor(random() * files.length)] ?? file;
      if (file === other) return false;
      renameSync(file, `${file}.swap`);
      renameSync(other, file);
      renameSync(`${file}.swap`, other);
      return true;
    },
  },
  {
    name: 'older copy of itself',
    apply(file, _files, random) {
      const copy = `${file}.older`;
      // The first time it is only remembered; later that is what the file becomes.
      if (!existsSync(copy)) copyFileSync(file, copy);
      if (random() < 0.3) return false;
      writeFileSync(file, readFileSync(copy));
      return true;
    },
  },
  {
    name: 'deleted',
    apply(file) {
      rmSync(file);
      return true;
    },
  },
  {
    name: 'deleted with its folder',
    apply(file) {
      rmSync(join(file, '..'), { recursive: true });
      return true;
    },
  },
  {
    name: 'unreadable',
    apply(file) {
      chmodSync(file, 0o000);
      return true;
    },
  },
  {
    name: 'replaced by a folder',
    apply(file) {
      rmSync(file);
      mkdirSync(join(file, 'below'), { recursive: true });
      return true;
    },
  },
];

/** What a file is for: its part of the row in the table. */
function kindOf(file: string, cache: string): string {
  const path = relative(cache, file);
  if (path.endsWith('data.mdb')) return 'LMDB data file';
  if (path.endsWith('lock.mdb')) return 'LMDB lock file';
  if (path.includes('/files/')) return 'cached file';
  return path.endsWith('marker.json') ? 'marker' : 'note of ends';
}

/** False also where the server has just removed the file. */
function damaged(damage: FileDamage, file: string, files: readonly string[], random: Random): boolean {
  try {
    return damage.apply(file, files, random);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Known documents: namespace → id → text, in the order of writing. */
type Model = Map<string, Map<string, string>>;

class Trial {
  readonly #random: Random;
  readonly #folder = temporaryFolder();
  readonly #crashFile = join(this.#folder, 'crash');
  readonly #model: Model = new Map();
  #server: ServerProcess;
  #key = '';
  #writes = 0;
  #threadCrashes = 0;
  restarts = 0;
  lives = 0;
  checks = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#server = this.#spawn();
  }

  get cache(): string {
    return join(this.#folder, 'cache');
  }

  #spawn(): ServerProcess {
    this.lives++;
    return new ServerProcess({
      folder: this.#folder,
      command: 'serve',
      nodeArguments: ['--import', new URL('../support/crash-thread.js', import.meta.url).href],
      env: {
        TIDEBASE_COMMIT_MS: '10',
        TIDEBASE_ACTOR_THREADS: String(actorThreads),
        TIDEBASE_TEST_CRASH_FILE: this.#crashFile,
        // Native code that walks a circle of damaged pages is ended well before a check gives up.
        TIDEBASE_TEST_SILENT_MS: '10000',
      },
    });
  }

  /** Namespaces on both threads: in a manifest's tail, in segments, with replaced and deleted documents. */
  async begin(): Promise<void> {
    await this.#server.listening();
    const api = new ApiClient(this.#server.url);
    this.#key = (await api.signup('cache@example.com')).key;
    api.close();
    await this.#withApi(async (client) => {
      for (let n = 0; n < 4; n++) {
        await this.#put(client, `small-${n}`, 5, 200);
        await this.#put(client, `large-${n}`, 8, n % 2 === 0 ? 60_000 : 200_000);
      }
    });
    await this.nextLife('SIGTERM');
    // Over the segments that there are now: tombstones, and memory beside them. Blocks of more than 64 KB are cached as files.
    await this.#withApi(async (client) => {
      for (let n = 0; n < 4; n++) await this.#put(client, `large-${n}`, 3, 200_000, 2);
    });
    await this.check();
  }

  async #put(api: ApiClient, namespace: string, count: number, textBytes: number, from = 0): Promise<void> {
    const documents = this.#model.get(namespace) ?? new Map<string, string>();
    this.#model.set(namespace, documents);
    const docs = Array.from({ length: count }, (_, i) => ({
      id: `d${from + i}`,
      text: `w${this.#writes++} ${namespace} ${this.#noise(textBytes)}`,
    }));
    await api.put(namespace, docs);
    for (const { id, text } of docs) {
      documents.delete(id);
      documents.set(id, text);
    }
  }

  #noise(length: number): string {
    return randomBytes(length / 2).toString('hex');
  }

  /** A damage and a file that it fits. */
  damage(): { kind: string; damage: string } {
    for (let attempt = 0; attempt < 100; attempt++) {
      const files = filesBelow(this.cache).filter((path) => !path.endsWith('.older'));
      // There are many cached files, and few that hold everything together.
      const shareOf = (file: string) => (file.includes('/files/') ? 0.15 : file.endsWith('.json') ? 0.4 : 1);
      const weighted = files.filter((file) => this.#random() < shareOf(file));
      const file = weighted[Math.floor(this.#random() * weighted.length)];
      const damage = fileDamages[Math.floor(this.#random() * fileDamages.length)];
      if (file === undefined || damage === undefined) continue;
      const kind = kindOf(file, this.cache);
      if (damaged(damage, file, files, this.#random)) return { kind, damage: damage.name };
    }
    // Nothing is left of the cache: that is a damage as well.
    return { kind: 'everything', damage: 'gone' };
  }

  /** Ends the process and starts another. */
  async nextLife(signal: 'SIGTERM' | 'SIGKILL', between = () => {}): Promise<void> {
    if (signal === 'SIGTERM') {
      await this.end();
    } else {
      await this.#killBoth();
    }
    between();
    this.#server = this.#spawn();
    await this.#server.listening();
  }

  /** The supervisor first, or it would start another server. */
  async #killBoth(): Promise<void> {
    const children = readFileSync(
      `/proc/${this.#server.pid}/task/${this.#server.pid}/children`,
      'utf8',
    ).trim();
    this.#server.signal('SIGKILL');
    if (/^\d+$/.test(children)) killIfThere(Number(children));
    // Both hold its output: it ends when the second is gone.
    await this.#server.end();
  }

  /** A thread that dies takes its memory with it: its successor reads what is on the disk. */
  async forgetMemory(): Promise<void> {
    const before = this.#server.urls.length;
    const deaths = () => this.#server.errors.split('an actor thread died').length - 1;
    const died = deaths();
    writeFileSync(this.#crashFile, `worker ${++this.#threadCrashes}-${this.lives}`);
    const gone = () => deaths() >= died + actorThreads || this.#server.urls.length > before;
    await this.#server.until(gone, 'its actor threads die', answerMsMax);
  }

  /** Everything again, as often as the server went away meanwhile: once at most. */
  async check(): Promise<void> {
    const before = this.#server.urls.length;
    for (let round = 0; round < 2; round++) await this.#untilAnswered(before);
    this.restarts += this.#server.urls.length - before;
    assert.ok(this.#server.urls.length - before <= 1, 'one restart at most');
  }

  async #untilAnswered(urlsBefore: number): Promise<void> {
    for (;;) {
      const urls = this.#server.urls.length;
      try {
        await this.#withApi((api) => this.#checkAll(api));
        return;
      } catch (error) {
        if (!isConnection(error) || urls > urlsBefore) throw error;
        await this.#server.listening(urls + 1);
      }
    }
  }

  async #checkAll(api: ApiClient): Promise<void> {
    this.checks++;
    for (const [namespace, documents] of this.#model) {
      const ids = [...documents.keys()].reverse();
      const [id = '', text = ''] = [...documents][Math.floor(this.#random() * documents.size)] ?? [];
      assert.equal((await this.#answered(() => api.get(namespace, id))).text, text, `${namespace}/${id}`);
      const { hits, partial } = await this.#answered(() => api.search(namespace, { q: '' }));
      assert.deepEqual([hits.map((hit) => hit.id), partial], [ids, false], namespace);
      const word = text.slice(0, text.indexOf(' ') + 1);
      const found = await this.#answered(() => api.count(namespace, { q: word }));
      assert.deepEqual([found.count, found.ids], [1, [id]], `${namespace}: ${word}`);
      const absent = await this.#answered(() => api.request('GET', documentPath(namespace, 'absent')));
      assert.equal(absent.status, 404);
    }
    if (this.#random() < 0.3) await this.#put(api, `small-${Math.floor(this.#random() * 4)}`, 1, 100);
  }

  /** A thread that starts again answers 503 for a moment. */
  async #answered<T>(ask: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + answerMsMax;
    for (;;) {
      try {
        const answer = await this.#inTime(ask());
        if ((answer as { status?: number }).status !== 503) return answer;
      } catch (error) {
        if ((error as { status?: number }).status !== 503) throw error;
      }
      assert.ok(
        performance.now() < deadline,
        `unavailable for too long\n${this.#server.errors.slice(-3_000)}`,
      );
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Silence is no answer. */
  async #inTime<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const said = () =>
        new Error(`no answer within ${answerMsMax} ms\n${this.#server.errors.slice(-3_000)}`);
      timer = setTimeout(() => reject(said()), answerMsMax);
    });
    try {
      return await Promise.race([answer, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #withApi(use: (api: ApiClient) => Promise<void>): Promise<void> {
    const api = new ApiClient(this.#server.url, this.#key);
    try {
      await use(api);
    } finally {
      api.close();
    }
  }

  /** In order, or by a crash of native code that meets the damage only now: the supervisor says 1 then. */
  async end(): Promise<void> {
    const { code, signal } = await this.#server.stop();
    const shown = `${signal ?? code}: ${this.#server.errors.slice(-2_000)}`;
    assert.ok(signal === null && (code === 0 || code === 1), shown);
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

/** The server went away under the request; anything else is an answer. */
function isConnection(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code !== undefined && /^E(CONN|PIPE)/.test(code);
}

describe(`a damaged cache (CORRUPT_SEED=${seed})`, { concurrency: 1 }, () => {
  it(`${wanted} damages of cache files never change an answer, and cost one restart at most`, async (t) => {
    const random = seededRandom(seed);
    const table = new DamageTable();
    const trial = new Trial(random);
    await trial.begin();

    for (let at = 0; at < wanted; at++) {
      const restartsBefore = trial.restarts;
      let done = { kind: '', damage: '' };
      const between = random() < betweenShare;
      const when = between ? 'between lives' : 'while running';
      if (between) {
        await trial.nextLife(random() < 0.7 ? 'SIGTERM' : 'SIGKILL', () => {
          done = trial.damage();
        });
      } else {
        done = trial.damage();
        if (random() < 0.5) await trial.forgetMemory();
      }
      try {
        await trial.check();
      } catch (error) {
        throw new Error(`${at}: ${done.kind}, ${done.damage}, ${when}`, { cause: error });
      }
      const restarted = trial.restarts > restartsBefore;
      table.add(done.kind, done.damage, restarted ? `right after a restart (${when})` : `right (${when})`);
    }

    for (const line of table.lines()) t.diagnostic(line);
    t.diagnostic(
      `seed ${seed}: ${trial.checks} checks, ${trial.lives} lives, ${trial.restarts} restarts by the supervisor`,
    );
    await trial.end();
  });
});
