import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TimeSlice } from '../../../actors/search/time-slice.ts';
import { ReadDeadline } from '../../../actors/storage/read-deadline.ts';
import { Turn } from '../../../actors/thread/turn.ts';
import { Charges } from '../../../src/base/charges.ts';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { type Share, upkeepShare } from '../../../src/base/share.ts';

const limitMs = 60_000;

/** The time of a thread passes only where a test lets it pass. */
class Thread {
  ms = 0;
  readonly charges = new Charges();
  /** Its timers hold the process, because nothing else does where a test waits for one. */
  readonly clock: Clock = {
    ...systemClock,
    monotonic: () => this.ms,
    after(ms, run) {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
  };

  /** Something else has the thread. */
  async others(ms: number): Promise<void> {
    await nextTurn();
    this.ms += ms;
  }

  begin(share = upkeepShare): { readonly slice: TimeSlice; readonly deadline: ReadDeadline } {
    const deadline = new ReadDeadline(this.clock, limitMs);
    const { charges } = this;
    const turn = new Turn({ share, beganAt: this.ms, cause: 'test', charges });
    return { slice: new TimeSlice(this.clock, deadline, turn), deadline };
  }
}

const shareOf = (owner: number): Share => ({ owner, tenant: owner, weight: 1 });

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('the time that a query is charged', () => {
  it('is what it worked, not what it waited for, also inside work that is waited for', async () => {
    const thread = new Thread();
    const { slice, deadline } = thread.begin();
    thread.ms += 3;

    await slice.waitFor(
      (async () => {
        thread.ms += 4;
        await deadline.wait(thread.others(1_000));
        thread.ms += 5;
        await slice.giveWay();
        thread.ms += 6;
        await deadline.wait(thread.others(1_000));
      })(),
    );
    thread.ms += 7;
    slice.end();

    assert.equal(slice.cpuMs, 25);
    assert.equal(thread.charges.ms.upkeep, 25);
    assert.ok(thread.charges.takeLongest().ms <= 9);
  });

  it('is never counted twice, where two work in turn', async () => {
    const thread = new Thread();
    const work = async () => {
      const { slice } = thread.begin();
      for (let step = 0; step < 10; step++) {
        thread.ms += 2;
        await slice.giveWay();
      }
      slice.end();
      return slice.cpuMs;
    };

    assert.deepEqual(await Promise.all([work(), work()]), [20, 20]);
    assert.equal(thread.charges.ms.upkeep, 40);
  });

  it('ends for all with the turn of the thread, where they go on after one another within it', async () => {
    const thread = new Thread();
    let turnsOfOthers = 0;
    let isOver = false;
    const others = async () => {
      for (; !isOver; turnsOfOthers++) await nextTurn();
    };
    const work = async () => {
      const { slice } = thread.begin();
      for (let step = 0; step < 200; step++) {
        thread.ms += 0.5;
        if (slice.due()) await slice.giveWay();
        // What it waits for is there already, so the other one goes on in the same turn.
        await Promise.resolve();
      }
      slice.end();
    };

    const ended = others();
    await Promise.all([work(), work(), work()]);
    isOver = true;
    await ended;

    // 300 ms of work in slices of 2.
    assert.ok(turnsOfOthers >= 75, `others had ${turnsOfOthers} turns`);
  });

  it('ends with the turn, where nobody said that it waits', async () => {
    const thread = new Thread();
    const { slice } = thread.begin();
    thread.ms += 2;
    await nextTurn();
    await nextTurn();
    thread.ms += 500;

    assert.equal(slice.due(), false);
    thread.ms += 3;
    slice.end();

    assert.equal(slice.cpuMs, 5);
  });

  it('goes on where a read has come too late', async () => {
    const thread = new Thread();
    const { slice, deadline } = thread.begin();
    thread.ms += limitMs;

    await assert.rejects(deadline.wait(new Promise(() => undefined)), { name: 'ReadTimedOut' });
    thread.ms += 2;
    slice.end();

    assert.equal(slice.cpuMs, limitMs + 2);
  });
});

describe('in a turn of the thread that others have used up', () => {
  it('who uses little goes on, and who uses much gives way', async () => {
    const thread = new Thread();
    const [busy, light] = [shareOf(1_001), shareOf(1_002)];
    const { slice } = thread.begin(busy);
    thread.ms += 200;
    await slice.giveWay();
    thread.ms += 3;

    const another = thread.begin(busy).slice;
    const small = thread.begin(light).slice;

    assert.equal(another.due(), true);
    assert.equal(small.due(), false);
    thread.ms += 3;
    assert.equal(small.due(), true, 'it has had a slice of its own');
    for (const each of [slice, another, small]) each.end();
  });
});
