import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { type Packing, packingOf, packings } from '../../../src/front/body-packing.ts';
import { Unpacker } from '../../../src/front/unpack-body.ts';
import { seededRandom } from '../../support/segments.ts';
import { zstdSync } from '../../support/zstd-sync.ts';

const pack: Readonly<Record<Packing, (raw: Uint8Array) => Buffer>> = {
  gzip: gzipSync,
  zstd: (raw) => zstdSync(raw),
};

/** Unpacks pieces as they would come, and checks that each piece is taken before the next. */
async function unpacked(packing: Packing, pieces: readonly Uint8Array[]): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let isTaking = false;
  const unpacker = new Unpacker(
    packing,
    async (part) => {
      assert.equal(isTaking, false, 'one at a time');
      isTaking = true;
      if (parts.length % 3 === 0) await systemClock.yieldTurn();
      isTaking = false;
      assert.ok(part.byteLength > 0 && part.byteLength <= 256 * 1024);
      parts.push(part);
    },
    systemClock,
  );
  try {
    for (const piece of pieces) await unpacker.take(piece);
    await unpacker.end();
  } finally {
    unpacker.close();
  }
  return Buffer.concat(parts);
}

const refusal = async (packing: Packing, pieces: readonly Uint8Array[]) => {
  try {
    await unpacked(packing, pieces);
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, message: error.message };
    throw error;
  }
  return { status: 200, message: '' };
};

const random = seededRandom(7);
const lines = Buffer.from(
  Array.from({ length: 60_000 }, (_, at) => `${at},${Math.floor(random() * 1e9)},a text that repeats\n`).join(
    '',
  ),
);

function cut(bytes: Uint8Array, most: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + Math.floor(random() * most);
    pieces.push(bytes.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

for (const packing of packings)
  describe(packing, () => {
    const packed = pack[packing](lines);

    for (const most of [1, 100, 70_000, 10_000_000])
      test(`what was packed comes back from pieces of up to ${most} bytes`, async () => {
        const few = most === 1 ? lines.subarray(0, 5_000) : lines;
        const found = await unpacked(packing, cut(most === 1 ? pack[packing](few) : packed, most));
        assert.ok(found.equals(few));
      });

    test('streams one behind the other are one file', async () => {
      const both = Buffer.concat([
        packed,
        pack[packing](Buffer.from('more')),
        pack[packing](Buffer.alloc(0)),
      ]);
      const found = await unpacked(packing, cut(both, 5_000));
      assert.ok(found.equals(Buffer.concat([lines, Buffer.from('more')])));
    });

    test('a stream that is cut anywhere is refused', async () => {
      for (const share of [0.999, 0.5, 0.01]) {
        const short = packed.subarray(0, Math.floor(packed.length * share));
        const { status, message } = await refusal(packing, cut(short, 50_000));
        assert.equal(status, 422);
        assert.match(message, new RegExp(`the body's ${packing} stream ends early`, 'u'));
      }
    });

    test('a byte that is changed is noticed, or changes nothing', async () => {
      const small = pack[packing](lines.subarray(0, 2_000));
      for (let round = 0; round < 150; round++) {
        const wrong = Buffer.from(small);
        const at = Math.floor(random() * wrong.length);
        wrong[at] = (wrong[at] as number) ^ (1 << Math.floor(random() * 8));
        const { status } = await refusal(packing, [wrong]);
        // Zstd's frames here have no checksum: what they say may be other bytes, and never an error of ours.
        assert.ok(
          status === 422 || packing === 'zstd' || gunzipSync(wrong).equals(lines.subarray(0, 2_000)),
          `byte ${at}`,
        );
      }
    });

    test('what is no stream, or goes on with something else, is refused', async () => {
      for (const pieces of [[Buffer.from('id,text\n1,x\n')], [packed, Buffer.from('more lines')]]) {
        const { status } = await refusal(packing, pieces);
        assert.equal(status, 422);
      }
    });

    test('a bomb is refused long before it has unpacked', async () => {
      const zeros = Buffer.alloc(48 * 1024 * 1024);
      const bomb = Buffer.concat(Array.from({ length: 2 }, () => pack[packing](zeros)));
      let passed = 0;
      const unpacker = new Unpacker(
        packing,
        async (part) => {
          passed += part.byteLength;
        },
        systemClock,
      );
      const taken = unpacker.take(bomb);
      await assert.rejects(taken, (error) => error instanceof ApiError && error.status === 413);
      unpacker.close();
      const most = Math.min(
        limits.importBodyBytesMax,
        bomb.length * limits.importUnpackedMost + limits.importUnpackedSlackBytes,
      );
      assert.ok(passed <= most, `${passed} of ${most}`);
    });

    test('where nothing more is taken, unpacking ends', async () => {
      const unpacker = new Unpacker(packing, () => Promise.reject(new Error('full')), systemClock);
      await assert.rejects(unpacker.take(packed), /full/u);
      unpacker.close();
    });
  });

test('a zstd stream with a window of more than 8 MB is refused with what to do', async () => {
  const { status, message } = await refusal('zstd', [zstdSync(Buffer.alloc(30_000_000, 'x1y2'), 25)]);
  assert.equal(status, 422);
  assert.match(message, /window of more than 8 MB/u);
});

test('encodings that are not known are 415', () => {
  const named = (value: string | undefined) => packingOf({ header: () => value });
  assert.deepEqual([undefined, '', 'identity', 'GZIP', 'x-gzip', ' zstd '].map(named), [
    null,
    null,
    null,
    'gzip',
    'gzip',
    'zstd',
  ]);
  for (const value of ['br', 'deflate', 'gzip, gzip', 'gzip;q=1'])
    assert.throws(
      () => named(value),
      (error) => error instanceof ApiError && error.status === 415,
    );
});
