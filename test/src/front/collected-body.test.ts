import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { limits } from '../../../protocol/limits.ts';
import { BodySlabs, CollectedBody } from '../../../src/front/collected-body.ts';

const megabyte = 1_000_000;

/** Bytes that differ from those around them, wherever a cut goes. */
function bytesOf(length: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >> 8) + seed) & 0xff;
  return bytes;
}

describe('a body that is collected', () => {
  it('is what came, however it was cut, in a buffer of its own', async () => {
    const chunkBytes = fc.oneof(fc.nat(300), fc.integer({ min: 200_000, max: 600_000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(chunkBytes, { maxLength: 30 }),
        fc.boolean(),
        fc.nat(255),
        async (lengths, isDeclared, seed) => {
          const total = lengths.reduce((sum, length) => sum + length, 0);
          const whole = bytesOf(total, seed);
          const slabs = new BodySlabs();
          slabs.give([Buffer.alloc(limits.bodySlabBytes, 0xee)]);
          const body = new CollectedBody(slabs, isDeclared ? total : -1);
          let at = 0;
          for (const [i, length] of lengths.entries()) {
            // The caller uses its buffer again.
            const chunk = whole.slice(at, at + length);
            body.append(chunk, i === lengths.length - 1);
            chunk.fill(0);
            at += length;
          }
          assert.equal(body.filled, total);
          const taken = await body.take();
          assert.ok(Buffer.from(taken).equals(whole));
          assert.equal(body.filled, 0);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('lies in slabs that are used again by those after it, given up or taken', async () => {
    const slabs = new BodySlabs();
    const made = new Set<ArrayBufferLike>();
    const take = slabs.take.bind(slabs);
    slabs.take = () => {
      const slab = take();
      made.add(slab.buffer);
      return slab;
    };
    const chunk = new Uint8Array(500_000);
    for (let round = 0; round < 20; round++) {
      const body = new CollectedBody(slabs, 66 * megabyte);
      for (let i = 0; i < 40; i++) body.append(chunk, false);
      if (round % 2 === 0) body.drop();
      else assert.equal((await body.take()).byteLength, 20 * megabyte);
    }

    assert.equal(made.size, Math.ceil((20 * megabyte - 256 * 1024) / limits.bodySlabBytes));
  });

  it('does not keep more slabs than the bound', () => {
    const slabs = new BodySlabs();
    const given = Array.from({ length: limits.bodySlabsKept + 5 }, () => new Uint8Array(1));
    slabs.give(given);
    let again = 0;
    while (slabs.take().byteLength === 1) again++;

    assert.equal(again, limits.bodySlabsKept);
  });

  it('takes one small piece as it is, without a buffer larger than it', async () => {
    const body = new CollectedBody(new BodySlabs(), 5);
    body.append(Buffer.from('abcde'), true);
    const taken = await body.take();

    assert.equal(Buffer.from(taken).toString(), 'abcde');
    assert.equal(taken.byteLength, 5);
  });
});
