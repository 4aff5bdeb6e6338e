import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { AssertionError } from '../../src/base/assert.ts';
import {
  type ObjectStore,
  type PutResult,
  StoreError,
  type Upload,
} from '../../src/object-store/object-store.ts';

const racers = 32;
/** A store's clock is its own, and its times are whole seconds. */
const clockToleranceMs = 10_000;

/** The contract of `ObjectStore`, point by point. `open` gives a store that may hold other objects already. */
export function objectStoreSuite(name: string, open: () => Promise<ObjectStore>): void {
  describe(`object store contract: ${name}`, () => {
    let store: ObjectStore;
    const folder = `contract/${randomBytes(8).toString('hex')}`;
    let keysMade = 0;
    const newKey = () => `${folder}/${++keysMade}`;

    before(async () => {
      store = await open();
    });
    after(async () => {
      await removeAll(store, `${folder}/`);
      await store.close();
    });

    describe('create and get', () => {
      it('returns what was stored, its size and its etag', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(key, [text('hello')]));
        assert.deepEqual(await read(store, key), { text: 'hello', etag, size: 5 });
      });

      it('returns null for a missing key, also below and beside existing ones', async () => {
        const key = newKey();
        await store.putIfAbsent(key, [text('x')]);
        assert.equal(await store.get(newKey()), null);
        assert.equal(await store.get(`${key}x`), null);
        assert.equal(await store.get(`${folder}/nowhere/near`), null);
        assert.equal(await store.get(newKey(), { range: { offset: 0, length: 1 } }), null);
        assert.equal(await store.get(newKey(), { range: { suffix: 1 } }), null);
      });

      it('refuses a second create and keeps the first bytes', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(key, [text('first')]));
        assert.deepEqual(await store.putIfAbsent(key, [text('second')]), { kind: 'refused' });
        assert.deepEqual(await read(store, key), { text: 'first', etag, size: 5 });
      });

      it('stores empty objects', async () => {
        const [none, empty] = [newKey(), newKey()];
        await store.putIfAbsent(none, []);
        await store.putIfAbsent(empty, [new Uint8Array(0), new Uint8Array(0)]);
        for (const key of [none, empty]) {
          assert.equal((await store.get(key))?.size, 0);
          assert.equal((await store.get(key, { range: { suffix: 4 } }))?.bytes.length, 0);
          assert.equal((await store.get(key, { range: { offset: 0, length: 4 } }))?.bytes.length, 0);
        }
      });

      it('joins many buffers in order, empty ones among them', async () => {
        const key = newKey();
        const parts = Array.from({ length: 2000 }, (_, i) => text(i % 7 === 0 ? '' : `${i},`));
        await store.putIfAbsent(key, parts);
        assert.equal((await read(store, key))?.text, Buffer.concat(parts).toString());
      });

      it('stores views on shared memory and parts of larger buffers', async () => {
        const key = newKey();
        const shared = new Uint8Array(new SharedArrayBuffer(64), 8, 16).fill(65);
        const slice = Buffer.from('0123456789').subarray(3, 6);
        await store.putIfAbsent(key, [shared, slice]);
        assert.equal((await read(store, key))?.text, `${'A'.repeat(16)}345`);
      });

      it('gives back arrays whose memory is their own', async () => {
        const key = newKey();
        await store.putIfAbsent(key, [text('0123456789')]);
        for (const range of [undefined, { offset: 2, length: 3 }, { suffix: 4 }]) {
          const bytes = must(await store.get(key, range && { range })).bytes;
          assert.equal(bytes.buffer.byteLength, bytes.length);
          bytes.fill(0);
        }
        assert.equal((await read(store, key))?.text, '0123456789');
      });

      it('stores 20 MB and reads it whole and in parts', async () => {
        const key = newKey();
        const big = randomBytes(20_000_000);
        await store.putIfAbsent(key, [
          big.subarray(0, 1),
          big.subarray(1, 9_000_000),
          big.subarray(9_000_000),
        ]);
        assert.equal(Buffer.compare(must(await store.get(key)).bytes, big), 0);
        const range = { offset: 8_000_000, length: 6_000_000 };
        const part = must(await store.get(key, { range }));
        assert.equal(Buffer.compare(part.bytes, big.subarray(8_000_000, 14_000_000)), 0);
        assert.equal(part.size, 20_000_000);
      });
    });

    describe('ranges', () => {
      it('reads by offset, and cuts what is beyond the end', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(key, [text('0123456789')]));
        const cases: readonly (readonly [number, number, string])[] = [
          [0, 1, '0'],
          [3, 4, '3456'],
          [9, 1, '9'],
          [8, 100, '89'],
          [0, 10, '0123456789'],
          [10, 1, ''],
          [1_000_000, 5, ''],
        ];
        for (const [offset, length, expected] of cases)
          assert.deepEqual(
            await read(store, key, { offset, length }),
            { text: expected, etag, size: 10 },
            `${offset}+${length}`,
          );
      });

      it('reads the last bytes, at most all of them', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(key, [text('0123456789')]));
        assert.deepEqual(await read(store, key, { suffix: 3 }), { text: '789', etag, size: 10 });
        assert.deepEqual(await read(store, key, { suffix: 10 }), { text: '0123456789', etag, size: 10 });
        assert.deepEqual(await read(store, key, { suffix: 1000 }), { text: '0123456789', etag, size: 10 });
      });

      it('reads ranges of an updated object', async () => {
        const key = newKey();
        const first = stored(await store.putIfAbsent(key, [text('first version, long')]));
        const etag = stored(await store.putIfMatch(key, [text('0123456789')], first));
        assert.deepEqual(await read(store, key, { offset: 8, length: 9 }), { text: '89', etag, size: 10 });
        assert.deepEqual(await read(store, key, { suffix: 3 }), { text: '789', etag, size: 10 });
      });

      it('refuses ranges that name nothing', async () => {
        const key = newKey();
        for (const range of [
          { offset: -1, length: 1 },
          { offset: 0, length: 0 },
          { offset: 0.5, length: 1 },
          { suffix: 0 },
          { suffix: Number.NaN },
        ])
          await assert.rejects(store.get(key, { range }), AssertionError);
      });
    });

    describe('update', () => {
      it('replaces the version whose etag is given, many times', async () => {
        const key = newKey();
        let etag = stored(await store.putIfAbsent(key, [text('0')]));
        const etags = new Set([etag]);
        for (let i = 1; i <= 12; i++) {
          etag = stored(await store.putIfMatch(key, [text(`version ${i}`)], etag));
          etags.add(etag);
          assert.deepEqual(await read(store, key), {
            text: `version ${i}`,
            etag,
            size: `version ${i}`.length,
          });
        }
        assert.equal(etags.size, 13);
      });

      it('refuses every older etag, and etags that were never given out', async () => {
        const key = newKey();
        const first = stored(await store.putIfAbsent(key, [text('1')]));
        const second = stored(await store.putIfMatch(key, [text('2')], first));
        const third = stored(await store.putIfMatch(key, [text('3')], second));
        const foreign = stored(await store.putIfAbsent(newKey(), [text('other')]));
        for (const etag of [first, second, foreign, '"00000000000000000000000000000000"'])
          assert.deepEqual(await store.putIfMatch(key, [text('stale')], etag), { kind: 'refused' });
        assert.deepEqual(await read(store, key), { text: '3', etag: third, size: 1 });
      });

      it('refuses to update a missing object, and does not create it', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(newKey(), [text('other')]));
        assert.deepEqual(await store.putIfMatch(key, [text('x')], etag), { kind: 'refused' });
        assert.equal(await store.get(key), null);
      });

      it('refuses a create of an updated object', async () => {
        const key = newKey();
        const first = stored(await store.putIfAbsent(key, [text('1')]));
        await store.putIfMatch(key, [text('2')], first);
        assert.deepEqual(await store.putIfAbsent(key, [text('3')]), { kind: 'refused' });
        assert.equal((await read(store, key))?.text, '2');
      });

      it('lets an object grow and shrink by updates', async () => {
        const key = newKey();
        let etag = stored(await store.putIfAbsent(key, [text('small')]));
        for (const size of [100_000, 0, 17, 3_000_000, 1]) {
          const body = randomBytes(size);
          etag = stored(await store.putIfMatch(key, [body], etag));
          assert.equal(Buffer.compare(must(await store.get(key)).bytes, body), 0);
        }
      });
    });

    describe('getIfChanged', () => {
      it('says unchanged while the etag is that of the stored version', async () => {
        const key = newKey();
        const first = stored(await store.putIfAbsent(key, [text('1')]));
        assert.equal(await store.getIfChanged(key, first), 'unchanged');
        const second = stored(await store.putIfMatch(key, [text('22')], first));
        const changed = await store.getIfChanged(key, first);
        assert.ok(changed !== null && changed !== 'unchanged');
        assert.deepEqual([asText(changed.bytes), changed.etag, changed.size], ['22', second, 2]);
        assert.equal(await store.getIfChanged(key, second), 'unchanged');
      });

      it('returns null where there is no object, also after a delete', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(key, [text('1')]));
        await store.delete(key);
        assert.equal(await store.getIfChanged(key, etag), null);
        assert.equal(await store.getIfChanged(newKey(), etag), null);
      });
    });

    describe('delete', () => {
      it('removes an object, and a missing one without complaint', async () => {
        const key = newKey();
        await store.putIfAbsent(key, [text('1')]);
        await store.delete(key);
        await store.delete(key);
        await store.delete(`${folder}/never/there`);
        assert.equal(await store.get(key), null);
      });

      it('is not undone by an update with an etag from before', async () => {
        const key = newKey();
        const first = stored(await store.putIfAbsent(key, [text('1')]));
        const second = stored(await store.putIfMatch(key, [text('2')], first));
        await store.delete(key);
        for (const etag of [first, second])
          assert.deepEqual(await store.putIfMatch(key, [text('stale')], etag), { kind: 'refused' });
        assert.equal(await store.get(key), null);
      });

      it('lets the key be created again, and old etags do not touch the new object', async () => {
        const key = newKey();
        const old = stored(await store.putIfAbsent(key, [text('old')]));
        const older = stored(await store.putIfMatch(key, [text('old 2')], old));
        await store.delete(key);
        const fresh = stored(await store.putIfAbsent(key, [text('new')]));
        for (const etag of [old, older])
          assert.deepEqual(await store.putIfMatch(key, [text('stale')], etag), { kind: 'refused' });
        assert.deepEqual(await read(store, key), { text: 'new', etag: fresh, size: 3 });
        const next = stored(await store.putIfMatch(key, [text('new 2')], fresh));
        assert.deepEqual(await read(store, key), { text: 'new 2', etag: next, size: 5 });
      });
    });

    describe('races', () => {
      it('lets exactly one of many creates win, and stores its bytes', async () => {
        const key = newKey();
        const results = await Promise.all(
          Array.from({ length: racers }, (_, i) => settled(store.putIfAbsent(key, [text(`racer ${i}`)]))),
        );
        assert.equal((await read(store, key))?.text, `racer ${onlyWinner(results)}`);
      });

      it('lets exactly one of many updates of one version win, the first as well as later ones', async () => {
        const key = newKey();
        let etag = stored(await store.putIfAbsent(key, [text('start')]));
        for (let round = 0; round < 3; round++) {
          const results = await Promise.all(
            Array.from({ length: racers }, (_, i) =>
              settled(store.putIfMatch(key, [text(`${round}/${i}`)], etag)),
            ),
          );
          const now = must(await read(store, key));
          assert.equal(now.text, `${round}/${onlyWinner(results)}`);
          etag = now.etag;
        }
      });

      it('never has two owners of a key that is created and deleted in a race', async () => {
        const key = newKey();
        for (let round = 0; round < 5; round++) {
          const results = await Promise.all(
            Array.from({ length: 8 }, (_, i) => settled(store.putIfAbsent(key, [text(`${round}/${i}`)]))),
          );
          assert.equal((await read(store, key))?.text, `${round}/${onlyWinner(results)}`);
          await store.delete(key);
          assert.equal(await store.get(key), null);
        }
      });

      it('returns whole versions while the object is updated', async () => {
        const key = newKey();
        const body = (i: number) => text(`${i};`.repeat(20_000 + i));
        let etag = stored(await store.putIfAbsent(key, [body(0)]));
        let done = false;
        const write = async () => {
          for (let i = 1; i <= 20; i++) etag = stored(await store.putIfMatch(key, [body(i)], etag));
          done = true;
        };
        const hammer = async () => {
          let last = 0;
          while (!done) {
            const { bytes, size } = must(await store.get(key));
            const [number = ''] = asText(bytes.subarray(0, 20)).split(';');
            assert.equal(Buffer.compare(bytes, body(Number(number))), 0);
            assert.equal(size, bytes.length);
            assert.ok(Number(number) >= last, 'an older version came after a newer one');
            last = Number(number);
          }
        };
        await Promise.all([write(), hammer(), hammer(), hammer()]);
      });
    });

    describe('streams', () => {
      it('stores what the chunks are together, of every size around a part', async () => {
        const partBytes = 8 * 1024 * 1024;
        for (const size of [0, 1, 1000, partBytes - 1, partBytes, partBytes + 1, 2 * partBytes, 43_000_000]) {
          const key = newKey();
          const whole = randomBytes(size);
          const result = await store.putStream(key, chunksOf(whole, 1_234_567));
          assert.ok(result.kind === 'stored');
          assert.equal(result.size, size);
          const object = must(await store.get(key));
          assert.deepEqual([object.size, object.etag], [size, result.etag]);
          assert.equal(Buffer.compare(object.bytes, whole), 0);
          const range = must(await store.get(key, { range: { suffix: 10 } }));
          assert.deepEqual([...range.bytes], [...whole.subarray(Math.max(0, size - 10))]);
        }
        assert.deepEqual(await uploadsOf(store, folder), []);
      });

      it('takes empty chunks, parts of larger buffers and shared memory, and keeps none of them', async () => {
        const key = newKey();
        const reused = new Uint8Array(new SharedArrayBuffer(64), 8, 4);
        async function* chunks() {
          yield new Uint8Array(0);
          for (let i = 0; i < 5; i++) yield reused.fill(65 + i);
          yield Buffer.from('0123456789').subarray(3, 6);
        }
        await store.putStream(key, chunks());
        assert.equal((await read(store, key))?.text, 'AAAABBBBCCCCDDDDEEEE345');
      });

      it('refuses to replace an object, small or large', async () => {
        const key = newKey();
        const etag = stored(await store.putIfAbsent(key, [text('first')]));
        for (const size of [5, 20_000_000]) {
          const again = await store.putStream(key, chunksOf(randomBytes(size), 1_000_000));
          assert.deepEqual(again, { kind: 'refused' });
        }
        assert.deepEqual(await read(store, key), { text: 'first', etag, size: 5 });
        assert.deepEqual(await uploadsOf(store, folder), []);
      });

      it('can be created against, updated and deleted as any object', async () => {
        const key = newKey();
        const result = await store.putStream(key, chunksOf(randomBytes(20_000_000), 5_000_000));
        assert.ok(result.kind === 'stored');
        assert.deepEqual(await store.putIfAbsent(key, [text('x')]), { kind: 'refused' });
        stored(await store.putIfMatch(key, [text('next')], result.etag));
        assert.equal((await read(store, key))?.text, 'next');
        await store.delete(key);
        assert.equal(await store.get(key), null);
      });

      it('stores nothing where the chunks fail, and leaves no upload', async () => {
        for (const size of [100, 30_000_000]) {
          const key = newKey();
          const failure = new Error('no more');
          async function* chunks() {
            yield* chunksOf(randomBytes(size), 1_000_000);
            throw failure;
          }
          await assert.rejects(store.putStream(key, chunks()), (error) => error === failure);
          assert.equal(await store.get(key), null);
        }
        assert.deepEqual(await uploadsOf(store, folder), []);
      });

      it('takes no chunk before it has room for it', async () => {
        let ahead = 0;
        let aheadMax = 0;
        const body = randomBytes(1_000_000);
        async function* chunks() {
          for (let i = 0; i < 100; i++) {
            aheadMax = Math.max(aheadMax, ++ahead);
            // Whoever asks for the next one has taken this one.
            yield body;
            ahead--;
          }
        }
        await store.putStream(newKey(), chunks());
        assert.equal(aheadMax, 1);
      });
    });

    describe('uploads', () => {
      /** An upload that has begun and goes on when `end` is called. */
      async function begin(key: string) {
        let end = () => {};
        const held = new Promise<void>((resolve) => {
          end = resolve;
        });
        async function* chunks() {
          yield randomBytes(20_000_000);
          await held;
          yield randomBytes(10);
        }
        const result = store.putStream(key, chunks());
        result.catch(() => {});
        const until = Date.now() + 10_000;
        while ((await uploadsOf(store, key)).length === 0 && Date.now() < until)
          await new Promise((resolve) => setTimeout(resolve, 20));
        return { end, result };
      }

      it('are shown with their key and time until they end, and no object is', async () => {
        const key = newKey();
        const { end, result } = await begin(key);
        const [upload] = await uploadsOf(store, folder);
        assert.equal(upload?.key, key);
        assert.ok(Math.abs(must(upload).startedAtMs - Date.now()) <= clockToleranceMs);
        assert.equal(await store.get(key), null);
        assert.deepEqual(await keysOf(store, key), []);
        end();
        assert.equal((await result).kind, 'stored');
        assert.deepEqual(await uploadsOf(store, folder), []);
        assert.equal((await store.get(key))?.size, 20_000_010);
      });

      it('can be aborted by anybody: nothing is stored then', async () => {
        const key = newKey();
        const { end, result } = await begin(key);
        const [upload] = await uploadsOf(store, key);
        await store.abortUpload(must(upload));
        await store.abortUpload(must(upload));
        assert.deepEqual(await uploadsOf(store, key), []);
        end();
        await assert.rejects(
          result,
          (error) => error instanceof StoreError && error.outcome === 'not-applied',
        );
        assert.equal(await store.get(key), null);
      });

      it('are aborted without complaint after they have ended, and the object stays', async () => {
        const key = newKey();
        const { end, result } = await begin(key);
        const [upload] = await uploadsOf(store, key);
        end();
        await result;
        await store.abortUpload(must(upload));
        assert.equal((await store.get(key))?.size, 20_000_010);
      });

      it('are listed by prefix and in pages', async () => {
        const root = `${newKey()}/`;
        const keys = ['a/1', 'a/2', 'b', 'b', 'c'].map((name) => root + name);
        const begun: Awaited<ReturnType<typeof begin>>[] = [];
        for (const key of keys) begun.push(await begin(key));
        assert.deepEqual(
          (await uploadsOf(store, `${root}a`)).map((upload) => upload.key),
          keys.slice(0, 2),
        );
        assert.equal((await uploadsOf(store, root)).length, 5);
        const seen: Upload[] = [];
        for (;;) {
          const after = seen.at(-1);
          const page = await store.listUploads(root, { limit: 2, ...(after && { after }) });
          seen.push(...page.uploads);
          assert.ok(page.uploads.length <= 2);
          if (!page.more) break;
        }
        assert.deepEqual(
          seen.map((upload) => upload.key),
          keys,
        );
        assert.equal(new Set(seen.map((upload) => upload.uploadId)).size, 5);
        for (const upload of seen) await store.abortUpload(upload);
        for (const { end, result } of begun) {
          end();
          await assert.rejects(result, StoreError);
        }
      });
    });

    describe('list', () => {
      const names = [
        'a',
        'a-b/1',
        'a.b',
        'aa/1',
        'aa/2/x',
        'aa/20',
        'b/c/d/e',
        'b/c.d',
        'b/c0',
        'c_',
        'cA',
        'z/1',
      ];

      it('lists every key under the prefix in byte order with its size', async () => {
        const root = `${newKey()}/`;
        await fill(store, root, names);
        const page = await store.list(root, { limit: 1000 });
        const expected = names.map((name) => ({ key: root + name, size: name.length })).sort(byKey);
        assert.deepEqual(
          page.objects.map(({ key, size }) => ({ key, size })),
          expected,
        );
        assert.equal(page.more, false);
      });

      it('says of each key when its current version came', async () => {
        const root = `${newKey()}/`;
        const beforeMs = Date.now() - clockToleranceMs;
        await fill(store, root, ['created', 'updated']);
        const { etag } = must(await store.get(`${root}updated`));
        await store.putIfMatch(`${root}updated`, [text('again')], etag);
        for (const { key, modifiedAtMs } of (await store.list(root, { limit: 10 })).objects) {
          assert.ok(modifiedAtMs >= beforeMs && modifiedAtMs <= Date.now() + clockToleranceMs, key);
        }
      });

      it('takes a prefix that ends anywhere', async () => {
        const root = `${newKey()}/`;
        await fill(store, root, names);
        for (const prefix of ['a', 'a-', 'aa', 'aa/', 'aa/2', 'b/c', 'b/c/', 'b/c/d/e', 'nothing', 'z/1/'])
          assert.deepEqual(
            await keysOf(store, root + prefix),
            names
              .filter((name) => name.startsWith(prefix))
              .map((name) => root + name)
              .sort(),
            prefix,
          );
      });

      it('pages by after and limit, and says whether more follows', async () => {
        const root = `${newKey()}/`;
        await fill(store, root, names);
        const all = names.map((name) => root + name).sort();
        for (const limit of [1, 2, 5, 11, 12, 13]) {
          const seen: string[] = [];
          for (;;) {
            const last = seen.at(-1);
            const page = await store.list(root, { limit, ...(last === undefined ? {} : { after: last }) });
            seen.push(...page.objects.map((object) => object.key));
            assert.equal(page.more, seen.length < all.length);
            assert.ok(page.objects.length <= limit);
            if (!page.more) break;
          }
          assert.deepEqual(seen, all);
        }
      });

      it('begins after a key that need not exist', async () => {
        const root = `${newKey()}/`;
        await fill(store, root, names);
        const all = names.map((name) => root + name).sort();
        for (const place of ['a', 'a0', 'aa', 'aa/', 'aa/2', 'aa/2/w', 'b', 'b/c/zzz', 'zz'])
          assert.deepEqual(
            (await store.list(root, { limit: 1000, after: root + place })).objects.map(
              (object) => object.key,
            ),
            all.filter((key) => key > root + place),
            place,
          );
        assert.deepEqual(await keysOf(store, root, `${folder}/`), all);
      });

      it('shows an updated object once with its new size, and no deleted one', async () => {
        const root = `${newKey()}/`;
        await fill(store, root, ['gone', 'stays', 'gone-updated', 'folder/gone']);
        for (const name of ['stays', 'gone-updated']) {
          const { etag } = must(await store.get(root + name));
          await store.putIfMatch(root + name, [text('longer now')], etag);
        }
        for (const name of ['gone', 'gone-updated', 'folder/gone']) await store.delete(root + name);
        const { objects } = await store.list(root, { limit: 10 });
        assert.deepEqual(
          objects.map(({ key, size }) => ({ key, size })),
          [{ key: `${root}stays`, size: 10 }],
        );
      });

      it('shows each of many keys right after it was created', async () => {
        const root = `${newKey()}/`;
        for (let i = 10; i < 30; i++) {
          await store.putIfAbsent(`${root}${i}`, [text('x')]);
          assert.equal((await keysOf(store, root)).at(-1), `${root}${i}`);
        }
      });

      it('refuses limits and prefixes outside the bounds', async () => {
        for (const limit of [0, -1, 1.5, 1001])
          await assert.rejects(store.list('', { limit }), AssertionError);
        for (const prefix of ['/', 'a//', '../', 'a/.', 'a b', 'a@'])
          await assert.rejects(store.list(prefix, { limit: 1 }), AssertionError);
      });
    });

    describe('keys', () => {
      it('takes every allowed character and length', async () => {
        const long = `${newKey()}/${'p'.repeat(200)}/${'q'.repeat(200)}/${'r'.repeat(200)}/${'s'.repeat(200)}/`;
        const keys = [`${newKey()}/AZaz09-_.x`, `${newKey()}/a..b`, long + 't'.repeat(900 - long.length)];
        for (const key of keys) {
          const etag = stored(await store.putIfAbsent(key, [text(key)]));
          stored(await store.putIfMatch(key, [text(`${key}!`)], etag));
          assert.equal((await read(store, key))?.text, `${key}!`);
          assert.deepEqual(await keysOf(store, key), [key]);
        }
      });

      it('refuses bad keys in every call', async () => {
        const bad = [
          '',
          '/',
          '/a',
          'a/',
          'a//b',
          '.',
          '..',
          'a/../b',
          '.a',
          'a/.b',
          'a b',
          'a@',
          'ä',
          'a\\b',
          'a\n',
        ];
        for (const key of [...bad, 'k'.repeat(201), `${'k/'.repeat(450)}k`]) {
          await assert.rejects(store.get(key), AssertionError, key);
          await assert.rejects(store.getIfChanged(key, 'x'), AssertionError, key);
          await assert.rejects(store.putIfAbsent(key, []), AssertionError, key);
          await assert.rejects(store.putIfMatch(key, [], 'x'), AssertionError, key);
          await assert.rejects(store.putStream(key, chunksOf(text('x'), 1)), AssertionError, key);
          await assert.rejects(store.delete(key), AssertionError, key);
        }
      });
    });

    describe('close', () => {
      it('fails calls after it with a StoreError that promises that nothing was stored', async () => {
        const closed = await open();
        await closed.close();
        for (const call of [
          closed.get(newKey()),
          closed.putIfAbsent(newKey(), []),
          closed.delete(newKey()),
          closed.putStream(newKey(), chunksOf(text('x'), 1)),
        ])
          await assert.rejects(
            call,
            (error) => error instanceof StoreError && error.outcome === 'not-applied',
          );
      });
    });
  });
}

function text(value: string): Uint8Array {
  return Buffer.from(value);
}

function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

function must<T>(value: T | null | undefined): T {
  assert.ok(value !== null && value !== undefined);
  return value;
}

function stored(result: PutResult): string {
  assert.ok(result.kind === 'stored');
  assert.ok(result.etag.length > 0);
  return result.etag;
}

async function read(
  store: ObjectStore,
  key: string,
  range?: { offset: number; length: number } | { suffix: number },
) {
  const object = await store.get(key, range && { range });
  return object && { text: asText(object.bytes), etag: object.etag, size: object.size };
}

/** A conflict is a lost race too; anything else is not. */
async function settled(put: Promise<PutResult>): Promise<'stored' | 'lost'> {
  try {
    return (await put).kind === 'stored' ? 'stored' : 'lost';
  } catch (error) {
    if (error instanceof StoreError && error.reason === 'conflict' && error.outcome === 'not-applied')
      return 'lost';
    throw error;
  }
}

function onlyWinner(results: readonly string[]): number {
  assert.equal(results.filter((result) => result === 'stored').length, 1);
  return results.indexOf('stored');
}

async function fill(store: ObjectStore, root: string, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => store.putIfAbsent(root + name, [text(name)])));
}

async function keysOf(store: ObjectStore, prefix: string, after?: string): Promise<string[]> {
  const page = await store.list(prefix, { limit: 1000, ...(after === undefined ? {} : { after }) });
  return page.objects.map((object) => object.key);
}

async function uploadsOf(store: ObjectStore, prefix: string): Promise<readonly Upload[]> {
  return (await store.listUploads(prefix, { limit: 1000 })).uploads;
}

async function* chunksOf(whole: Uint8Array, chunkBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < whole.length; at += chunkBytes) yield whole.subarray(at, at + chunkBytes);
}

function byKey(a: { key: string }, b: { key: string }): number {
  return a.key < b.key ? -1 : 1;
}

async function removeAll(store: ObjectStore, prefix: string): Promise<void> {
  for (;;) {
    const page = await store.list(prefix, { limit: 1000 });
    await Promise.all(page.objects.map((object) => store.delete(object.key)));
    if (!page.more) return;
  }
}
