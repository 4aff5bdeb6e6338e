import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../actors/storage/block-fetch.ts';
import { type DecodeTask, decodeBlocks, whileSoon } from '../../../actors/storage/decode-blocks.ts';
import { DecodingTurns, decodingPieces } from '../../../actors/storage/decoding-turns.ts';
import {
  BlockOwner,
  type BlockPlace,
  blockKinds,
  decodeBlock,
  encodeBlock,
} from '../../../actors/storage/segment-format.ts';
import { limits } from '../../../protocol/limits.ts';
import { DataError } from '../../../src/base/assert.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { randomBlock } from '../../support/literal-blocks.ts';
import { CountingStore, seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const key = 'ns/ab/n/segment/s';
const otherKind = 9;

interface StoredObject {
  readonly bytes: Buffer;
  readonly places: readonly BlockPlace[];
  readonly raws: readonly Buffer[];
}

/** An object of blocks that hardly compress, some of them of documents. */
function randomObject(random: () => number, count: number, rawBytesMax: number): StoredObject {
  const owner = new BlockOwner(key);
  const places: BlockPlace[] = [];
  const parts: Buffer[] = [];
  const raws: Buffer[] = [];
  let offset = 0;
  for (let at = 0; at < count; at++) {
    const kind = random() < 0.3 ? blockKinds.documents : otherKind;
    const raw =
      kind === otherKind
        ? Buffer.from(
            Uint8Array.from({ length: 1 + Math.floor(random() * rawBytesMax) }, () => random() * 256),
          )
        : Buffer.from(randomBlock(random, at).block.buffer);
    const block = encodeBlock(kind, raw, { compress: random() < 0.5, owner, offset });
    places.push({ offset, length: block.length, kind });
    parts.push(block);
    raws.push(raw);
    offset += block.length;
  }
  return { bytes: Buffer.concat(parts), places, raws };
}

/** Yields to what is queued already, as a thread does between two turns. */
const yieldTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('blocks are decoded as one by one; a damaged one is null, and so is one of documents that contradict each other', () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 30; round++) {
    const { bytes, places, raws } = randomObject(random, 20, 5_000);
    const owner = new BlockOwner(key);
    const damaged = new Set([...places.keys()].filter(() => random() < 0.2));
    for (const at of damaged) {
      const { offset, length } = places[at] as BlockPlace;
      const where = offset + Math.floor(random() * length);
      bytes[where] = (bytes[where] as number) ^ 1;
    }
    const wanted = places.slice(3, 17);
    const [{ offset: from }, end] = [wanted[0] as BlockPlace, wanted.at(-1) as BlockPlace];
    const stored = Uint8Array.from(bytes.subarray(from, end.offset + end.length));

    const decoded = decodeBlocks({
      task: 'decode-blocks',
      objectKey: key,
      stored,
      offset: from,
      places: wanted,
    });

    for (const [at, raw] of decoded.raws.entries()) {
      const { offset, length, kind } = wanted[at] as BlockPlace;
      const one = bytes.subarray(offset, offset + length);
      if (damaged.has(at + 3)) {
        assert.equal(raw, null);
        assert.throws(() => decodeBlock(one, kind, owner, offset), DataError);
      } else {
        assert.deepEqual(raw, decodeBlock(one, kind, owner, offset));
        assert.deepEqual(raw, raws[at + 3]);
        assert.ok(raw?.buffer instanceof SharedArrayBuffer);
      }
    }
  }
  const owner = new BlockOwner(key);
  const raw = Buffer.from(randomBlock(random, 0).block.buffer);
  raw.writeUInt32LE(raw.readUInt32LE(0) + 1, 0);
  const stored = encodeBlock(blockKinds.documents, raw, { compress: true, owner, offset: 0 });
  const places = [{ offset: 0, length: stored.length, kind: blockKinds.documents }];
  const decoded = decodeBlocks({ task: 'decode-blocks', objectKey: key, stored, offset: 0, places });
  assert.deepEqual(decoded.raws, [null]);
});

test('pieces of a range have all its places in their order, and a large one is a piece by itself', () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 100; round++) {
    let offset = 0;
    const places = Array.from({ length: Math.floor(random() * 40) }, () => {
      const length = 1 + Math.floor(random() ** 3 * 1_000_000);
      const place = { offset, length, kind: otherKind };
      offset += length + (random() < 0.5 ? 0 : Math.floor(random() * 256 * 1024));
      return place;
    });
    const pieces = decodingPieces(places);
    assert.deepEqual(pieces.flat(), places);
    for (const piece of pieces) {
      const [first, last] = [piece[0] as BlockPlace, piece.at(-1) as BlockPlace];
      const bytes = last.offset + last.length - first.offset;
      assert.ok(piece.length === 1 || bytes <= 384 * 1024, `a piece of ${piece.length} and ${bytes} bytes`);
    }
  }
});

type Helper = (task: DecodeTask) => ReturnType<typeof decodeBlocks> | Promise<never>;

test('what comes from the store is the same whoever decodes it: a helper that is prompt, late, refuses, dies, or finds damage', async (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const prompt: Helper = (task) => decodeBlocks(task);
  const refusing: Helper = () => Promise.reject(new Error('too many wait'));
  const blind: Helper = ({ places }) => ({ raws: places.map(() => null), cpuMs: 1 });
  const helpers: Readonly<Record<string, Helper>> = {
    prompt,
    refusing,
    blind,
    mixed: (task) => ([prompt, refusing, blind][Math.floor(random() * 3)] as Helper)(task),
  };
  for (const [name, help] of Object.entries(helpers)) {
    const { bytes, places, raws } = randomObject(random, 60, 60_000);
    const store = new CountingStore();
    await store.putIfAbsent(key, [bytes]);
    const kept = new Map<string, Buffer>();
    const warmCache = {
      get: (at: string) => kept.get(at),
      has: (at: string) => kept.has(at),
      put: (at: string, stored: Uint8Array) => void kept.set(at, Buffer.from(stored)),
      remove: (at: string) => void kept.delete(at),
    };
    const cache = new BlockCache(1e9);
    const blocks = new BlockFetcher({ store, warmCache, cache, yieldTurn }).open(key);
    let sent = 0;
    let tasks = 0;
    const tally = emptyReadTally();
    tally.decode = async (task) => {
      tasks++;
      sent += task.places.length;
      if (random() < 0.5) await yieldTurn();
      return help(task);
    };

    // Some are asked for several times, as by a look-up of many rows.
    const found = await blocks.fetch([...places, ...places.slice(0, 20)], tally);

    assert.deepEqual(
      found.map(({ raw }) => raw),
      [...raws, ...raws.slice(0, 20)],
      name,
    );
    assert.ok(tasks > 0, `${name}: nothing was decoded elsewhere`);
    const helped = found.slice(0, places.length).filter((block) => block.wasDecodedElsewhere);
    if (name === 'prompt') assert.equal(helped.length, sent);
    if (name === 'refusing' || name === 'blind') assert.equal(helped.length, 0);
    assert.equal(kept.size, places.length);
    for (const { offset, length } of places)
      assert.deepEqual(kept.get(`${key}@${offset}`), bytes.subarray(offset, offset + length));
    assert.ok(places.every(({ offset }) => blocks.cached(offset) !== undefined));
    assert.equal(store.gets, tally.storeGets);
    assert.equal(tally.storeGets, 1, name);
  }
});

test('damage in the store is an error that names object and offset, though another thread looked at it first', async (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const { bytes, places } = randomObject(seededRandom(seed), 60, 60_000);
  const store = new CountingStore();
  let looked: BlockPlace | null = null;
  const tally = emptyReadTally();
  tally.decode = async (task) => {
    looked ??= task.places.at(-1) as BlockPlace;
    return decodeBlocks(task);
  };
  const fetched = async () => {
    const cache = new BlockCache(1e9);
    return new BlockFetcher({ store, warmCache: null, cache, yieldTurn }).open(key).fetch(places, tally);
  };
  await store.putIfAbsent(key, [bytes]);
  await fetched();
  const damaged = looked as BlockPlace | null;
  assert.ok(damaged !== null, 'nothing was decoded elsewhere');
  store.spoil = (read, range) => {
    const offset = range !== undefined && 'offset' in range ? range.offset : 0;
    const spoiled = Buffer.from(read);
    spoiled[damaged.offset + damaged.length - 1 - offset] = 7;
    return spoiled;
  };
  const before = store.gets;
  await assert.rejects(fetched(), (error) => {
    assert.ok(error instanceof DataError);
    assert.match(error.message, new RegExp(`${key}.*${damaged.offset}`));
    return true;
  });
  // The block was read once more by itself.
  assert.equal(store.gets, before + 2);
});

test('pieces go elsewhere while more waits here than there, at most some at once, and what waits is counted to the byte', async () => {
  const turns = new DecodingTurns(yieldTurn);
  const open: (() => void)[] = [];
  const answers = Array.from({ length: 40 }, () =>
    turns.share(
      { storedBytes: 100_000, rawBytes: 300_000 },
      () => new Promise<void>((done) => open.push(done)),
    ),
  );
  await yieldTurn();
  // One here, one there.
  assert.equal(open.length, limits.decodingsElsewhereMax);
  assert.equal(turns.bytesHere, (40 - limits.decodingsElsewhereMax) * 100_000);
  for (const done of open) done();
  const found = await Promise.all(answers);
  assert.equal(found.filter((answer) => answer === null).length, 40 - limits.decodingsElsewhereMax);
  // What is small, or would be large, stays here.
  const never = () => Promise.reject(new Error('asked'));
  assert.equal(await turns.share({ storedBytes: 1_000, rawBytes: 3_000 }, never), null);
  const rawBytes = limits.decodedElsewhereBytesMax + 1;
  assert.equal(await turns.share({ storedBytes: 100_000, rawBytes }, never), null);
  turns.decodedHere(turns.bytesHere);
  assert.equal(turns.bytesHere, 0);
});

test('a helper that is late is waited for a moment, and not asked again for three times as long', async () => {
  const clock = new FakeClock();
  const charged: number[] = [];
  let asked = 0;
  let answer = (_: { raws: null[]; cpuMs: number }) => {};
  const decode = whileSoon(
    clock,
    () => {
      asked++;
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
    (cpuMs) => charged.push(cpuMs),
  );
  const task = {
    task: 'decode-blocks',
    objectKey: key,
    stored: new Uint8Array(0),
    offset: 0,
    places: [],
  } as const;
  const soon = decode(task);
  answer({ raws: [null], cpuMs: 3 });
  assert.deepEqual((await soon).raws, [null]);

  const late = assert.rejects(decode(task), /DecodedTooLate/);
  await clock.advance(limits.decodedElsewhereMsMax);
  await late;
  await assert.rejects(decode(task), /DecodedTooLate/);
  await clock.advance(limits.decodedElsewhereMsMax * 3 - 1);
  await assert.rejects(decode(task), /DecodedTooLate/);
  assert.equal(asked, 2);
  answer({ raws: [null], cpuMs: 4 });
  await yieldTurn();
  assert.deepEqual(charged, [3, 4]);

  await clock.advance(1);
  const again = decode(task);
  answer({ raws: [null], cpuMs: 5 });
  await again;
  assert.equal(asked, 3);
});
