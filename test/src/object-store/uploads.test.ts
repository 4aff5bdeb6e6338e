import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inParts } from '../../../src/object-store/uploads.ts';
import { seededBytes } from '../../support/in-process.ts';

const partBytes = 100;
/** Lengths of chunks about the parts: several in one chunk, one in several, and those that are a part by themselves. */
const lengths = [100, 0, 30, 70, 100, 350, 1, 99, 100, 100, 249, 5];
const whole = Buffer.from(seededBytes(1).bytes(lengths.reduce((sum, length) => sum + length, 0)));

/** Chunks that lie in memory which each of the next ones overwrites. */
async function* reusedChunks(): AsyncGenerator<Uint8Array, void, void> {
  const memory = Buffer.alloc(Math.max(...lengths));
  let at = 0;
  for (const length of lengths) {
    memory.fill(0xee);
    whole.copy(memory, 0, at, at + length);
    at += length;
    yield memory.subarray(0, length);
  }
}

test('parts stay as they are, whatever becomes of the chunks', async () => {
  const parts: Uint8Array[] = [];
  for await (const part of inParts(reusedChunks(), partBytes)) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(whole));
  assert.ok(parts.slice(0, -1).every(({ length }) => length === partBytes));
});

test('parts that are lent are good until the next one, and are views on chunks that are long enough', async () => {
  const parts: Buffer[] = [];
  const memories = new Set<ArrayBufferLike>();
  for await (const part of inParts(reusedChunks(), partBytes, { lends: true })) {
    parts.push(Buffer.from(part));
    memories.add(part.buffer);
  }
  assert.ok(Buffer.concat(parts).equals(whole));
  assert.ok(parts.slice(0, -1).every(({ length }) => length === partBytes));
  assert.ok(memories.size < parts.length, `${parts.length} parts in ${memories.size} memories`);
});

test('an empty stream has one part, which is empty', async () => {
  for (const lends of [false, true]) {
    const parts: Uint8Array[] = [];
    for await (const part of inParts(
      (async function* () {
        yield Buffer.alloc(0);
      })(),
      partBytes,
      { lends },
    ))
      parts.push(part);
    assert.deepEqual(parts, [new Uint8Array(0)]);
  }
});
