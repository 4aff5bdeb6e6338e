import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { createLogger } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { mailOf } from '../../../src/identity/mails.ts';
import { outboxCarrier } from '../../../src/identity/outbox.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const person = { name: 'Ada Łovelace', email: 'ada@example.com' };
const mail = mailOf({ kind: 'verify', person, token: 'secret-token' }, 'http://127.0.0.1:8080');

async function outbox(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'tidebase-outbox-'));
  t.after(() => rm(folder, { recursive: true }));
  const lines: string[] = [];
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const box = join(folder, 'outbox');
  const logger = createLogger('front', 'info', (line) => lines.push(line));
  const from = 'Tidebase <no-reply@localhost>';
  const carrier = outboxCarrier({ folder: box, from, clock, random: systemRandom, logger });
  return { box, lines, clock, carrier };
}

test('a mail is a whole file for its owner alone, and its path is logged without what is in it', async (t) => {
  const { box, carrier, lines } = await outbox(t);

  await carrier.carry(mail);

  const [name = '', ...others] = readdirSync(box);
  assert.deepEqual(others, []);
  assert.match(name, /^2026-01-02T030405\.000Z-[0-9a-f]{8}-verify\.txt$/);
  assert.equal(statSync(join(box, name)).mode & 0o777, 0o600);
  assert.equal(statSync(box).mode & 0o777, 0o700);
  const text = readFileSync(join(box, name), 'utf8');
  assert.match(
    text,
    /^From: Tidebase <no-reply@localhost>\nTo: Ada Łovelace <ada@example\.com>\nDate: .*\nSubject: /,
  );
  assert.ok(text.includes('\nhttp://127.0.0.1:8080/verify?token=secret-token\n'));
  assert.equal(lines.length, 1);
  const line = JSON.parse(lines[0] ?? '') as { level: string; file: string };
  assert.equal(line.level, 'info');
  assert.equal(line.file, join(box, name));
  assert.ok(!/ada@|token|8080/.test(lines.join('')));
});

test('names sort by time, and the oldest files go', async (t) => {
  const { box, carrier, clock } = await outbox(t);
  mkdirSync(box);
  for (let i = 0; i < limits.outboxFilesMax; i++) {
    writeFileSync(join(box, `2025-01-01T0000${String(i).padStart(6, '0')}-old.txt`), '');
  }

  for (let i = 0; i < 3; i++) {
    await carrier.carry(mail);
    clock.jump(1_000);
  }

  const names = readdirSync(box).sort();
  assert.equal(names.length, limits.outboxFilesMax);
  assert.ok(names[0]?.startsWith('2025-01-01T0000000003'));
  const seconds = names.slice(-3).map((name) => name.slice(0, 17));
  assert.deepEqual(seconds, ['2026-01-02T030405', '2026-01-02T030406', '2026-01-02T030407']);
});
