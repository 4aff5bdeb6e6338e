import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { DailyFile, type DailyFileOptions } from '../../../src/base/daily-file.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const dayMs = 24 * 3_600_000;

describe('a daily file', () => {
  let folder: string;
  let clock: FakeClock;
  let losses: string[];
  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), 'tidebase-daily-')), 'audit');
    clock = new FakeClock();
    losses = [];
  });
  afterEach(() => rmSync(join(folder, '..'), { recursive: true }));

  const opened = (changes: Partial<DailyFileOptions> = {}) =>
    new DailyFile({
      folder,
      clock,
      daysKept: 3,
      dayBytesMax: 1_000,
      linesWaitingMax: 100,
      onLoss: (reason) => losses.push(String(reason)),
      ...changes,
    });
  const today = () => new Date(clock.now()).toISOString().slice(0, 10);
  const textOf = (day: string) => readFileSync(join(folder, `${day}.jsonl`), 'utf8');

  it('keeps lines in their order, one file a day, for its owner alone', async () => {
    const file = opened();
    const first = today();
    for (const line of ['a', 'b', 'c']) file.append(line, { droppable: false });
    await file.close();
    await clock.advance(dayMs);
    file.append('d', { droppable: false });
    await file.close();

    assert.equal(textOf(first), 'a\nb\nc\n');
    assert.equal(textOf(today()), 'd\n');
    assert.equal(statSync(join(folder, `${first}.jsonl`)).mode & 0o777, 0o600);
    assert.equal(statSync(folder).mode & 0o777, 0o700);
  });

  it('goes on in the file of the day, behind half a line that was left', async () => {
    mkdirSync(folder);
    writeFileSync(join(folder, `${today()}.jsonl`), 'a\nhal');

    const file = opened();
    file.append('b', { droppable: false });
    await file.close();

    assert.equal(textOf(today()), 'a\nhal\nb\n');
  });

  it('deletes what is older than it is to be kept, and nothing else', async () => {
    const file = opened();
    mkdirSync(folder);
    writeFileSync(join(folder, 'notes.txt'), '');
    const days: string[] = [];
    for (let day = 0; day < 5; day++) {
      days.push(today());
      file.append('a', { droppable: false });
      await file.close();
      await clock.advance(dayMs);
    }

    assert.deepEqual(readdirSync(folder).toSorted(), [
      ...days.slice(2).map((day) => `${day}.jsonl`),
      'notes.txt',
    ]);
  });

  it('drops what may be dropped once the day has its bytes, and says so once', async () => {
    const file = opened();
    const line = 'x'.repeat(99);
    for (let at = 0; at < 50; at++) {
      file.append(line, { droppable: true });
      await file.close();
    }
    file.append('done', { droppable: false });
    await file.close();
    // Another process goes on with the same file.
    const next = opened();
    next.append('first', { droppable: false });
    await next.close();
    next.append('never', { droppable: true });
    await next.close();

    assert.equal(textOf(today()).length, 10 * 100 + 5 + 6);
    assert.equal(losses.length, 2);
  });

  it('tells of lines that could not be written, and writes the next ones', async () => {
    const file = opened();
    writeFileSync(folder, 'a file where the folder should be');
    file.append('a', { droppable: false });
    await file.close();
    file.append('b', { droppable: false });
    await file.close();
    rmSync(folder);
    file.append('c', { droppable: false });
    await file.close();

    assert.equal(losses.length, 1);
    assert.equal(textOf(today()), 'c\n');
  });

  it('refuses lines past its queue', async () => {
    const file = opened({ linesWaitingMax: 3 });
    for (const line of ['a', 'b', 'c', 'd', 'e']) file.append(line, { droppable: false });
    await file.close();

    assert.equal(losses.length, 1);
    assert.equal(textOf(today()), 'a\nb\nc\nd\n');
  });
});
