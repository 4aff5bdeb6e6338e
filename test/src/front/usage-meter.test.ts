import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import type { UsageNote } from '../../../protocol/stored-tenant.ts';
import { createLogger } from '../../../src/base/log.ts';
import { UsageMeter } from '../../../src/front/usage-meter.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { keyPrincipal } from '../auth/principals.ts';

const one = { queries: 1, writes: 0 };

/** A meter whose tenants' actors are `answer`. */
function metered(answer: (told: number) => Promise<void> = async () => {}) {
  const clock = new FakeClock(Date.parse('2024-02-29T23:59:58Z'));
  const told: { readonly tenantId: number; readonly notes: readonly UsageNote[] }[] = [];
  const meter = new UsageMeter({
    clock,
    logger: createLogger('test', 'error'),
    tell: async (tenantId, notes) => {
      told.push({ tenantId, notes: structuredClone(notes) });
      await answer(told.length);
      return null;
    },
    learn() {},
  });
  const query = (tenantId = 1, keyId = 9) =>
    meter.count(keyPrincipal({ tenantId, keyId }), { queries: 1, cpuMs: 0.5 }, one);
  return { clock, told, meter, query };
}

describe('the usage meter', () => {
  it('tells once a second what was counted, by tenant and key, and then nothing', async () => {
    const { clock, told, query } = metered();
    for (let i = 0; i < 5; i++) query(1, i % 2);
    query(2);

    await clock.advance(1_000);
    await clock.advance(10_000);

    assert.deepEqual(
      told.map(({ tenantId, notes }) => [
        tenantId,
        notes[0]?.counters,
        notes[0]?.keys.map(({ queries }) => queries),
      ]),
      [
        [1, { queries: 5, cpuMs: 2.5 }, [3, 2]],
        [2, { queries: 1, cpuMs: 0.5 }, [1]],
      ],
    );
    assert.equal(clock.timers, 0);
  });

  it('keeps the days apart', async () => {
    const { clock, told, query, meter } = metered();
    query();
    clock.jump(3_000);
    query();
    query();

    await clock.run(meter.flush());

    assert.deepEqual(
      told[0]?.notes.map(({ day, counters }) => [day, counters.queries]),
      [
        ['2024-02-29', 1],
        ['2024-03-01', 2],
      ],
    );
  });

  it('tells again what surely was not written, with what came meanwhile', async () => {
    const { clock, told, query } = metered(async (times) => {
      if (times === 1) throw new ApiError('unavailable', 'nothing was written');
    });
    query();
    await clock.advance(1_000);
    query();
    await clock.advance(1_000);

    assert.deepEqual(
      told.map(({ notes }) => notes.map(({ counters, keys }) => [counters.queries, keys[0]?.queries])),
      [[[1, 1]], [[2, 2]]],
    );
  });

  it('never tells again what may have been written', async () => {
    const { clock, told, query } = metered(async () => {
      throw new ApiError('write_unknown', 'who knows');
    });
    query();
    await clock.advance(1_000);
    await clock.advance(5_000);

    assert.equal(told.length, 1);
  });

  it('tells one tenant one thing at a time, and a flush ends when all is told', async () => {
    let open = () => {};
    const { clock, told, query, meter } = metered((times) =>
      times === 1 ? new Promise<void>((resolve) => (open = resolve)) : Promise.resolve(),
    );
    query();
    await clock.advance(1_000);
    query();
    await clock.advance(1_000);
    assert.equal(told.length, 1);

    const flushed = meter.flush(1);
    open();
    await clock.run(flushed);

    assert.deepEqual(
      told.map(({ notes }) => notes[0]?.counters.queries),
      [1, 1],
    );
  });

  it('does not hurry where a key was only used', async () => {
    const { clock, told, meter } = metered();
    meter.count(keyPrincipal({}), null, { queries: 0, writes: 0 });

    await clock.advance(30_000);
    assert.equal(told.length, 0);
    await clock.advance(30_000);

    assert.equal(told[0]?.notes[0]?.keys[0]?.queries, 0);
  });
});
