import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { entryOf, namedTestFiles, nextJob, type TestFile, type TestJob, testJobs } from './test-jobs.ts';

const fileOf = (path: string): TestFile => ({ path, compiled: `/x/${path}` });
const titles = (...paths: string[]) =>
  testJobs(paths.map(fileOf)).map(({ title, files }) => `${title}: ${files.length}`);
const jobOf = (title: string, seconds: number, coreSeconds: number): TestJob => ({
  title,
  files: [],
  cost: { seconds, coreSeconds },
});

describe('which files share a process', () => {
  it('is a folder’s unit tests, and no file with a server or a judgement of its process', () => {
    assert.deepEqual(
      titles(
        'test/src/base/b.test.ts',
        'test/src/base/thread-priority.test.ts',
        'test/actors/search/sql/a.test.ts',
        'test/actors/search/b.test.ts',
        'test/end-to-end/a.test.ts',
        'test/end-to-end/b.test.ts',
        'test/src/base/c.test.ts',
      ).toSorted(),
      [
        'test/actors/search: 2',
        'test/end-to-end/a.test.ts: 1',
        'test/end-to-end/b.test.ts: 1',
        'test/src/base/thread-priority.test.ts: 1',
        'test/src/base: 2',
      ],
    );
  });

  it('names files that exist', () => {
    assert.deepEqual(
      namedTestFiles().filter((path) => !existsSync(path)),
      [],
    );
  });
});

describe('which files run beside each other', () => {
  const [busy, other, idle, small] = [
    jobOf('busy', 60, 60),
    jobOf('other', 50, 50),
    jobOf('idle', 40, 4),
    jobOf('small', 5, 4),
  ];

  it('are those that take longest, and beside them those that wait, as long as the cores can', () => {
    const running: TestJob[] = [];
    const waiting = [busy, other, small, idle];
    for (let job = nextJob(waiting, running, 2); job !== undefined; job = nextJob(waiting, running, 2)) {
      running.push(job);
      waiting.splice(waiting.indexOf(job), 1);
    }

    assert.deepEqual(
      running.map(({ title }) => title),
      ['busy', 'other', 'idle'],
    );
    assert.equal(nextJob(waiting, running.slice(1), 2), small);
  });

  it('is one at least, and no more than have their programs in memory', () => {
    const all = Array.from({ length: 10 }, (_, at) => jobOf(`waits ${at}`, 10, 0.1));

    assert.equal(nextJob([jobOf('of many threads', 10, 80)], [], 2)?.title, 'of many threads');
    assert.equal(nextJob(all, [], 2), all[0]);
    assert.equal(nextJob(all.slice(6), all.slice(0, 6), 2), undefined);
  });

  it('begin with the longest', () => {
    const long = 'test/end-to-end/outages.test.ts';
    const [first] = testJobs(['test/protocol/errors.test.ts', long].map(fileOf));

    assert.equal(first?.title, long);
  });
});

describe('a process of several files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-jobs-'));
  after(() => rmSync(folder, { recursive: true }));

  /** What it prints, and how it ends. */
  async function ran(...bodies: string[]): Promise<{ readonly code: number; readonly output: string }> {
    const files = bodies.map((body, at) => {
      const compiled = join(folder, `${at}.mjs`);
      writeFileSync(compiled, `import { after, beforeEach, test } from 'node:test';\n${body}`);
      return { path: `file ${at}`, compiled };
    });
    const entry = join(folder, 'entry.mjs');
    writeFileSync(entry, entryOf({ files }, 1_000, 200));
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const program = [process.execPath, ['--test-reporter=tap', entry], { env }] as const;
    return promisify(execFile)(...program).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
    );
  }

  it('runs each after the one before, with hooks of its own', async () => {
    const { code, output } = await ran(
      `globalThis.seen = ['loads 0']; beforeEach(() => seen.push('hook')); after(() => seen.push('after 0'));
       test('one', async () => { await 1; seen.push('one'); }); test('two', () => seen.push('two'));`,
      `seen.push('loads 1'); test('three', (t) => t.diagnostic(seen.join()));`,
    );
    assert.equal(code, 0, output);
    assert.match(output, /# loads 0,hook,one,hook,two,after 0,loads 1\n/);
    assert.match(output, /# tests 3\n/);
  });

  it('fails where one cannot be loaded or takes too long, and runs the others', async () => {
    const { code, output } = await ran(
      `throw new Error('cannot load');`,
      `test('waits', () => new Promise((resolve) => setTimeout(resolve, 3_000)));`,
      `test('runs', () => {});`,
    );
    assert.equal(code, 1);
    assert.match(output, /cannot load/);
    assert.match(output, /not ok \d+ - file 1/);
    assert.match(output, /ok \d+ - runs/);
  });

  it('ends where something keeps it alive, and says after which file', async () => {
    const { code, output } = await ran(
      `test('one', () => {});`,
      `test('leaves a timer', () => { setInterval(() => {}, 1_000); });`,
    );
    assert.equal(code, 1);
    assert.match(output, /kept alive by .*Timeout.*\nfile 1: Timeout\n/);
  });
});
