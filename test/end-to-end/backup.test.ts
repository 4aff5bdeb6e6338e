/**
 * `tidebase backup` of a server that is written to, and `tidebase restore` to another place. BACKUP_MB sets how many megabytes
 * lie there before (`npm run prove -- backup`: 2,000), so that segments are made and merged meanwhile. From 500 on the first
 * backup is ended by `kill -9` on its way.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { SignupAnswer } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const megabytes = Number(process.env.BACKUP_MB ?? 60);
const main = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const writers = 4;
/** Smaller ones are over before half of them is copied. */
const isEnded = megabytes >= 500;

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
  readonly tookMs: number;
}

function started(folder: string, args: readonly string[]) {
  return spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env.PATH ?? '', TIDEBASE_DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

function command(folder: string, ...args: string[]): Promise<Ended> {
  const beganAt = performance.now();
  const child = started(folder, args);
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  return new Promise((resolve) =>
    child.once('close', (code) => resolve({ code, output, errors, tookMs: performance.now() - beganAt })),
  );
}

/** Ends a backup by `kill -9` once a part is copied and noted. Resolves with the bytes that lie in the place then. */
async function endedBackup(folder: string, place: string): Promise<number> {
  const child = started(folder, ['backup', '--to', place]);
  const ended = once(child, 'close');
  const [notes, objects] = [join(place, 'unfinished'), join(place, 'objects')];
  while (!existsSync(objects) || !existsSync(notes) || readdirSync(notes).length < 3) {
    assert.equal(child.exitCode, null, 'it ended by itself');
    await sleep(10);
  }
  child.kill('SIGKILL');
  assert.deepEqual(await ended, [null, 'SIGKILL']);
  assert.ok(!existsSync(join(place, 'backups')), 'what was ended is no backup');
  return filesOf(objects).reduce((sum, file) => sum + statSync(file).size, 0);
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
  );
}

/** Whether a server's folder has a segment. */
function hasSegment(folder: string): boolean {
  try {
    return filesOf(join(folder, 'objects')).some((file) => file.includes('/segment/'));
  } catch {
    return false; // Something was deleted while the folders were read.
  }
}

/** One byte of the largest object of a backup is changed: each command says which object that is, and no server starts on a part. */
async function damagedBackup(folder: string, place: string): Promise<void> {
  const [victim = ''] = filesOf(join(place, 'objects')).sort((a, b) => statSync(b).size - statSync(a).size);
  const bytes = readFileSync(victim);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(victim, bytes);
  const elsewhere = temporaryFolder();
  for (const [where, ...more] of [[folder, '--check'], [elsewhere]] as const) {
    const refused = await command(where, 'restore', '--from', place, ...more);
    assert.equal(refused.code, 1, refused.output);
    assert.ok(refused.errors.includes(relative(place, victim)), `${victim} is not named: ${refused.errors}`);
    assert.match(refused.errors, /its SHA-256 is another one/);
  }
  await assert.rejects(startServer({ folder: elsewhere }), 'a server started on a part of a backup');
}

/** Puts numbered documents into a namespace of its own, one request after the other. */
class Writer {
  readonly namespace: string;
  begun = 0;
  acknowledged = 0;
  /** When each was acknowledged, in milliseconds since 1970. */
  readonly at: number[] = [];

  constructor(number: number) {
    this.namespace = `writer-${number}`;
  }

  async run(api: ApiClient, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const id = `d${++this.begun}`;
      const docs = [
        { id, text: `document ${id}`, meta: { n: this.begun } },
        { id: `${id}-twin`, text: `twin of ${id}` },
      ];
      await api.call('POST', `/v1/namespaces/${this.namespace}/docs`, { docs });
      this.acknowledged = this.begun;
      this.at.push(Date.now());
    }
  }
}

const filler = (at: number) =>
  Array.from({ length: 4_000 }, (_, word) => `w${(at * 7_919 + word * 104_729) % 1_000_003}`).join(' ');

async function fill(api: ApiClient): Promise<number> {
  let documents = 0;
  for (let bytes = 0; bytes < megabytes * 1e6; ) {
    const docs = Array.from({ length: 100 }, () => ({ id: `big${++documents}`, text: filler(documents) }));
    bytes += docs.reduce((sum, { text }) => sum + text.length, 0);
    await api.call('POST', '/v1/namespaces/large/docs', { docs });
  }
  return documents;
}

describe(`a backup of ${megabytes} MB under writes (BACKUP_MB)`, { concurrency: 1 }, () => {
  const servers: ServerProcess[] = [];
  after(async () => {
    for (const server of servers) await server.stop();
  });

  it('has every document of its moment and none that came after, and opens elsewhere', async (t) => {
    const folder = temporaryFolder();
    const place = temporaryFolder();
    const server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '20' } });
    servers.push(server);
    const signup = { email: 'backup@example.com', name: 'B', password: 'correct horse battery' };
    const { key } = await new ApiClient(server.url).call<SignupAnswer>('POST', '/v1/signup', signup);
    const api = new ApiClient(server.url, key);
    const large = await fill(api);
    // On a busy machine all of it could still be in the log: then no object of the backup would be one that is never replaced.
    await eventually(() => hasSegment(folder), 'a segment is made');
    await api.call('POST', '/v1/namespaces/gone/docs', { docs: [{ id: 'a', text: 'gone soon' }] });

    let isOver = false;
    const all = Array.from({ length: writers }, (_, number) => new Writer(number));
    const running = Promise.all(all.map((writer) => writer.run(api, () => isOver)));
    while (all.some(({ acknowledged }) => acknowledged < 3)) await sleep(20);
    await api.request('DELETE', '/v1/namespaces/gone');
    const copied = isEnded ? await endedBackup(folder, place) : 0;
    const first = await command(folder, 'backup', '--to', place);
    const begun = all.map((writer) => writer.begun);
    assert.equal(first.code, 0, first.errors);
    const [, told, added, moment = ''] =
      /^backup \S+ has [0-9,]+ objects, ([0-9.,]+) MB\n[0-9,]+ objects?, ([0-9.,]+) MB of it copied now; the moment is (\S+)\n$/.exec(
        first.output,
      ) ?? [];
    const before = all.map(({ at }) => at.filter((time) => time < Date.parse(moment)).length);
    assert.ok(
      before.every((count) => count > 0),
      first.output,
    );
    if (isEnded) assert.ok(bytesOf(added) < bytesOf(told) - 64e6, `it did not go on: ${first.output}`);
    const again = await command(folder, 'backup', '--to', place, '--keep', '2');
    assert.equal(again.code, 0, again.errors);
    const whole = await command(folder, 'restore', '--from', place, '--check');
    assert.match(whole.output, /is whole/);
    const listed = (await command(folder, 'restore', '--from', place, '--list')).output.trim().split('\n');
    assert.equal(listed.length, 2);
    isOver = true;
    await running;

    const other = temporaryFolder();
    const refused = await command(folder, 'restore', '--from', place);
    assert.deepEqual([refused.code, /is in use/.test(refused.errors)], [1, true]);
    const restored = await command(other, 'restore', '--from', place, '--backup', listed[0] ?? '');
    assert.equal(restored.code, 0, restored.errors);
    cpSync(join(folder, 'secrets'), join(other, 'secrets'), { recursive: true });
    const copy = await startServer({ folder: other });
    servers.push(copy);
    const there = new ApiClient(copy.url, key);
    for (const [at, writer] of all.entries()) {
      const { count } = await there.count(writer.namespace, {});
      assert.equal(count % 2, 0, 'a request is there whole or not at all');
      const documents = count / 2;
      assert.ok(
        documents >= (before[at] ?? 0),
        `${documents} of ${before[at]} acknowledged before its moment`,
      );
      assert.ok(documents <= (begun[at] ?? 0), `${documents}, and ${begun[at]} were begun before it ended`);
      const { count: least } = await there.count(writer.namespace, { filter: { n: { lte: documents } } });
      assert.equal(least, documents, 'the first ones, without a gap');
    }
    assert.equal((await there.count('large', {})).count, large);
    assert.equal(
      (await there.search('large', { q: filler(large).slice(0, 200) })).hits[0]?.id,
      `big${large}`,
    );
    assert.equal((await there.request('GET', '/v1/namespaces/gone')).status, 404);
    await there.call('POST', '/v1/namespaces/large/docs', { docs: [{ id: 'new', text: 'life goes on' }] });
    assert.deepEqual(copy.loggedErrors(), []);
    t.diagnostic(
      (isEnded ? `ended with ${megabytesOf(copied)} MB there; ` : '') +
        `${first.output.trim().replace('\n', ': ')}; backup ${(first.tookMs / 1_000).toFixed(1)} s, again ${(again.tookMs / 1_000).toFixed(1)} s (${again.output.split('\n')[1]}), ` +
        `check ${(whole.tookMs / 1_000).toFixed(1)} s, restore ${(restored.tookMs / 1_000).toFixed(1)} s; ` +
        `writers had ${before.join(', ')} at its moment and ${begun.join(', ')} at its end`,
    );
    await damagedBackup(folder, place);
  });

  it('tells a person what is wrong', async () => {
    const empty = temporaryFolder();
    const cases: readonly (readonly [readonly string[], number, RegExp])[] = [
      [['backup'], 2, /where do the backups lie\? Say --to PLACE/],
      [['backup', '--to', 'ftp://x'], 2, /"ftp:\/\/x" is no place/],
      [['backup', '--to', empty, '--keep', 'all'], 2, /--keep is a number from 1 on, not "all"/],
      [['backup', '--to', empty], 1, /no server has ever written to this object store/],
      [['restore', '--from', empty], 1, /there is no backup in this place/],
      [['restore', '--from', empty, '--check', '--list'], 2, /--check or --list, not both/],
    ];
    for (const [args, code, sentence] of cases) {
      const ended = await command(temporaryFolder(), ...args);
      assert.equal(ended.code, code, args.join(' '));
      assert.match(ended.errors, sentence);
    }
  });
});

const bytesOf = (shown = '') => Number(shown.replaceAll(',', '')) * 1e6;
const megabytesOf = (bytes: number) => (bytes / 1e6).toFixed(1);

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
