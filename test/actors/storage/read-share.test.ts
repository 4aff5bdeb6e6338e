import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ReadShare, ReadShares } from '../../../actors/storage/read-share.ts';
import { ApiError } from '../../../protocol/errors.ts';

describe('a share of reads', () => {
  it('never has more on its way than it may, ends all of them, and in their order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 40 }), async (sizes) => {
        const share = new ReadShare(100);
        const begun: number[] = [];
        let most = 0;
        await Promise.all(
          sizes.map((bytes, i) =>
            share
              .read(bytes, async () => {
                begun.push(i);
                most = Math.max(most, share.bytes);
                await new Promise((resolve) => setImmediate(resolve));
                if (i % 7 === 3) throw new Error('the store failed');
              })
              .catch(() => {}),
          ),
        );

        assert.ok(most <= 100, `${most} at once`);
        assert.equal(share.bytes, 0);
        assert.deepEqual(
          begun,
          sizes.map((_, i) => i),
        );
      }),
      { numRuns: 50 },
    );
  });

  it('refuses what it could never hold', () => {
    const share = new ReadShare(64_000_000);

    share.refuseOver(64_000_000);

    assert.throws(
      () => share.refuseOver(64_000_001),
      (error) => error instanceof ApiError && error.status === 413,
    );
  });

  it('is one for all queries of a tenant, and another when its plan is', () => {
    const shares = new ReadShares();

    assert.equal(shares.of(1, 100), shares.of(1, 100));
    assert.notEqual(shares.of(1, 100), shares.of(2, 100));
    assert.notEqual(shares.of(1, 100), shares.of(1, 200));
    assert.equal(shares.of(1, null), null);
  });
});

it('a tenant on several threads has one plan’s share in all, and a query may still ask for as much as the plan has', async () => {
  const [one, other] = [new ReadShares(2).of(1, 100), new ReadShares(2).of(1, 100)];
  assert.ok(one !== null && other !== null);
  one.refuseOver(100);
  assert.throws(() => one.refuseOver(101), { code: 'too_large' });
  const ends: (() => void)[] = [];
  const read = (share: typeof one) => share.read(40, () => new Promise<void>((end) => ends.push(end)));

  const reads = [read(one), read(one), read(other)];
  await Promise.resolve();

  assert.equal(one.bytes + other.bytes, 80, 'the second of one thread waits');
  for (let turn = 0; turn < 5; turn++) {
    for (const end of ends.splice(0)) end();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(reads);
});
