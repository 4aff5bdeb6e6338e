import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { BackupSite } from '../../../src/backup/backup-site.ts';
import { keepNewest } from '../../../src/backup/keep-newest.ts';
import { checkBackup, readBackup, restoreBackup } from '../../../src/backup/restore-backup.ts';
import { SiteLock } from '../../../src/backup/site-lock.ts';
import { takeBackup } from '../../../src/backup/take-backup.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import type { ObjectStore } from '../../../src/object-store/object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { seededRandom } from '../../support/segments.ts';
import { openedState, WrittenStore } from '../../support/written-store.ts';

const seed = Number(process.env.BACKUP_SEED ?? 1);
const rounds = Number(process.env.BACKUP_ROUNDS ?? 40);
const silent = () => {};

/** Time that passes where a test lets it; who sleeps has slept at once. */
class PassingClock implements Clock {
  #ms = 0;
  now = () => 1_700_000_000_000 + this.#ms;
  monotonic = () => this.#ms;
  pass(ms: number): void {
    this.#ms += ms;
  }
  async sleep(ms: number): Promise<void> {
    this.#ms += ms;
    await systemClock.yieldTurn();
  }
  after = systemClock.after;
  yieldTurn = systemClock.yieldTurn;
  hasBurst = systemClock.hasBurst;
}

/** The store, with some of the server's steps before each call. */
function stepping(store: MemoryObjectStore, steps: () => Promise<void>): ObjectStore {
  let last = Promise.resolve();
  return new Proxy<ObjectStore>(store, {
    get(target, name: keyof ObjectStore) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      return (...args: unknown[]) => {
        last = last.then(steps);
        return last.then(() => method.apply(target, args));
      };
    },
  });
}

const sorted = (documents: ReadonlyMap<string, readonly number[]>) =>
  [...documents].map(([id, found]) => [id, [...found].sort((a, b) => a - b)] as const).sort();

describe(`a backup of a store that is written to (BACKUP_SEED=${seed})`, () => {
  it(`is what there was at one moment, between its begin and its end, in ${rounds} histories`, async (t) => {
    let overtaken = 0;
    for (let round = 0; round < rounds; round++) {
      const random = seededRandom(seed * 1_000_003 + round);
      const clock = new PassingClock();
      const written = new WrittenStore(clock, random);
      await written.start();
      const stepMany = async (most: number) => {
        for (let left = Math.floor(random() * most); left > 0; left--) await written.step();
      };
      await stepMany(400);
      const place = new MemoryObjectStore();
      const site = new BackupSite(place, '', { clock, random: systemRandom });
      for (const pace of [3, 4]) {
        await stepMany(100);
        const before = written.history.length;
        const busy = Math.floor(random() * 60);
        let calls = 0;
        const store = stepping(written.memory, async () => {
          // Servers rest in the end, or no attempt would ever be quick enough.
          if (calls++ < busy * 10 && random() < 0.3) await stepMany(pace);
        });
        let views = 0;
        written.memory.get = async function (this: MemoryObjectStore, key, options) {
          if (key === paths.view) views++;
          return MemoryObjectStore.prototype.get.call(this, key, options);
        };
        await takeBackup({ store, site, clock, onProgress: silent });
        if (views > 6) overtaken++;

        const copy = new MemoryObjectStore();
        const found = await readBackup(site, undefined);
        await checkBackup({ site, clock, onProgress: silent }, found);
        await restoreBackup({ site, clock, onProgress: silent }, copy, found);
        const opened = await openedState(copy);
        const { history } = written;
        const first = history.findIndex(({ logId }) => logId === opened.logId);
        // A log of which nothing was copied begins where the one before it ended.
        const at = (first < 0 ? history.length : first) + opened.slot - 1;
        assert.ok(
          at + 1 >= before,
          `round ${round}: it ends at ${at} of ${history.length}, and began at ${before}`,
        );
        assert.deepEqual(
          sorted(opened.documents),
          sorted(history[at]?.documents ?? new Map()),
          `round ${round}, pace ${pace}`,
        );
        await systemClock.sleep(0);
      }
      await keepNewest(site, 1);
      await checkBackup({ site, clock, onProgress: silent }, await readBackup(site, undefined));
    }
    t.diagnostic(`${overtaken} of ${rounds * 2} backups were overtaken at least once`);
    assert.ok(overtaken > rounds / 10, 'servers that overtake a backup are among them');
  });
});

/** A store with some of everything, and a place for backups. */
async function oneStore() {
  const clock = new PassingClock();
  const random = seededRandom(7);
  const written = new WrittenStore(clock, random);
  await written.start();
  for (let step = 0; step < 300; step++) await written.step();
  const place = new MemoryObjectStore();
  const site = new BackupSite(place, 'here/', { clock, random: systemRandom });
  const backUp = (store: ObjectStore = written.memory) =>
    takeBackup({ store, site, clock, onProgress: silent });
  return { clock, written, place, site, backUp };
}

describe('backups in one place', () => {
  it('share what is the same in them, and the oldest can go', async () => {
    const { clock, written, site, place, backUp } = await oneStore();
    const first = await backUp();
    const again = await backUp();
    assert.equal(again.added.objects, 0);
    assert.equal(again.backup.end.objects, first.backup.end.objects);
    for (let step = 0; step < 50; step++) await written.step();
    clock.pass(5_000);
    const third = await backUp();
    assert.ok(third.added.objects > 0 && third.added.objects < third.backup.end.objects);

    const removed = await keepNewest(site, 1);
    assert.equal(removed.backups, 2);
    assert.ok(removed.objects > 0);
    assert.deepEqual(await site.backups(), [third.backup.name]);
    await checkBackup({ site, clock, onProgress: silent }, await readBackup(site, undefined));
    const { objects } = await place.list('', { limit: 1_000 });
    assert.ok(objects.every(({ key }) => key.startsWith('here/')));
  });

  it('go on where one was ended', async () => {
    const { clock, written, site, place, backUp } = await oneStore();
    let calls = 0;
    const failing = stepping(written.memory, async () => {
      // Notes are made every ten seconds.
      clock.pass(11_000);
      if (++calls > 25) throw new Error('the machine was switched off');
    });
    await assert.rejects(backUp(failing), /switched off/);
    assert.deepEqual(await site.backups(), []);
    const { objects } = await place.list('here/objects/', { limit: 1_000 });
    assert.ok(objects.length > 0);

    const { added, backup } = await backUp();
    assert.ok(
      added.objects < backup.end.objects,
      `${added.objects} of ${backup.end.objects} were copied again`,
    );
    assert.deepEqual((await place.list('here/unfinished/', { limit: 10 })).objects, []);
    await checkBackup({ site, clock, onProgress: silent }, await readBackup(site, undefined));
  });

  it('are refused where they are damaged, with the name of what is, and nothing half is opened', async () => {
    const { clock, site, place, backUp } = await oneStore();
    const { backup } = await backUp();
    const found = await readBackup(site, backup.name);
    const [victim] = found.entries.filter(({ at }) => at.startsWith('objects/ns/'));
    assert.ok(victim !== undefined);
    const key = `here/${victim.at}`;
    const bytes = Buffer.from((await place.get(key))?.bytes ?? []);
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    await place.delete(key);
    await place.putIfAbsent(key, [bytes]);
    const named = { name: 'DataError', message: new RegExp(victim.key) };
    await assert.rejects(checkBackup({ site, clock, onProgress: silent }, found), named);
    const copy = new MemoryObjectStore();
    await assert.rejects(restoreBackup({ site, clock, onProgress: silent }, copy, found), named);
    assert.equal(await copy.get(paths.view), null);

    await place.delete(key);
    await assert.rejects(checkBackup({ site, clock, onProgress: silent }, found), /it is missing/);
    const index = `here/backups/${backup.name}`;
    const text = Buffer.from((await place.get(index))?.bytes ?? []).toString();
    for (const damaged of [
      text.slice(0, -5),
      text.replace(/"size":\d+/, '"size":1'),
      text.replace(/\n[^\n]+\n/, '\n'),
    ]) {
      await place.delete(index);
      await place.putIfAbsent(index, [Buffer.from(damaged)]);
      await assert.rejects(readBackup(site, backup.name), {
        name: 'DataError',
        message: new RegExp(backup.name),
      });
    }
  });

  it('are restored into what is empty, or what a restoration before has begun to fill', async () => {
    const { clock, written, site, backUp } = await oneStore();
    await assert.rejects(readBackup(site, undefined), /there is no backup/);
    await backUp();
    await assert.rejects(
      readBackup(site, '20260101T000000Z-0000'),
      /there is no backup "20260101T000000Z-0000"/,
    );
    const found = await readBackup(site, undefined);
    const components = { site, clock, onProgress: silent };
    await assert.rejects(restoreBackup(components, written.memory, found), /is in use/);

    const copy = new MemoryObjectStore();
    let calls = 0;
    const failing = stepping(copy, async () => {
      if (++calls > 12) throw new Error('the machine was switched off');
    });
    await assert.rejects(restoreBackup(components, failing, found), /switched off/);
    assert.equal(await copy.get(paths.view), null);
    await restoreBackup(components, copy, found);
    assert.deepEqual(
      sorted((await openedState(copy)).documents),
      sorted((await openedState(written.memory)).documents),
    );

    const other = new MemoryObjectStore();
    const [entry] = found.entries.filter(({ key }) => key.startsWith('ns/'));
    await other.putIfAbsent(entry?.key ?? '', [Buffer.from('something else')]);
    await assert.rejects(restoreBackup(components, other, found), /is another object/);
  });

  it('have an object of every kind that there is, but for what only a living server needs', async () => {
    const { written, site, backUp } = await oneStore();
    const kinds = Object.entries(paths).flatMap(([name, key]): [name: string, key: string][] => {
      const of = key as string | ((id: string, number: number) => string);
      return [[name, typeof of === 'string' ? of : of('1', 2)]];
    });
    const objects = kinds.filter(([name, key]) => !key.endsWith('/') && name !== 'view');
    for (const [, key] of objects) await written.memory.putIfAbsent(key, [Buffer.from('bytes')]);

    await backUp();
    const { entries } = await readBackup(site, undefined);
    const copied = new Set(entries.map(({ key }) => key));
    const left = objects.filter(([, key]) => !copied.has(key)).map(([name]) => name);
    // The log is one that the view does not name, so it has nothing that is not in manifests.
    const ofNoLog = ['logObject', 'logFloor', 'logDone', 'logBlob', 'logPack'];
    assert.deepEqual(left.sort(), ['lease', 'probe', 'swept', ...ofNoLog].sort());
  });

  it('are not made of a store that no server has written to', async () => {
    const { backUp } = await oneStore();
    await assert.rejects(backUp(new MemoryObjectStore()), /nothing to back up/);
  });
});

describe('the lock of a place', () => {
  it('is held by one, and taken over from one that has ended', async () => {
    const clock = new FakeClock();
    const place = new MemoryObjectStore();
    const components = { clock, random: systemRandom };
    const lock = await SiteLock.take(place, 'lock', components);
    await assert.rejects(clock.run(SiteLock.take(place, 'lock', components)), /another backup is under way/);
    lock.assertHeld();
    await lock.release();
    assert.equal(await place.get('lock'), null);

    await place.putIfAbsent('lock', [Buffer.from('a process that was killed\n3\n')]);
    const next = await clock.run(SiteLock.take(place, 'lock', components));
    next.assertHeld();
    const held = await place.get('lock');
    await place.putIfMatch('lock', [Buffer.from('somebody else\n0\n')], held?.etag ?? '');
    await clock.run(clock.sleep(10_000));
    assert.throws(() => next.assertHeld(), /somebody else has it/);
    await next.release();
    assert.notEqual(await place.get('lock'), null);
  });
});
