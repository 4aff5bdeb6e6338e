import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createPulse, keepBeating, Watchdog } from '../../../src/base/watchdog.ts';
import { FakeClock, ProcessClock } from '../../support/fake-clock.ts';

const everyMs = 1_000;
const silentMsMax = 10_000;

/** Two threads that beat and one that watches them, each with a clock of its own that can be stopped. */
function watched() {
  const clock = new FakeClock();
  const silent: string[] = [];
  const onSilent = (thread: string) => silent.push(thread);
  const watchdog = new Watchdog({ clock, everyMs, silentMsMax, onSilent });
  const thread = (name: string) => {
    const own = new ProcessClock(clock);
    const pulse = createPulse();
    const forget = watchdog.watch(name, pulse);
    keepBeating(own, pulse, everyMs);
    return { stop: () => own.stop(), turnsAgain: () => keepBeating(clock, pulse, everyMs), forget };
  };
  return { clock, silent, watchdog, a: thread('a'), b: thread('b') };
}

describe('the watchdog', () => {
  it('says nothing of threads that turn', async () => {
    const { clock, silent } = watched();

    await clock.advance(20 * silentMsMax);

    assert.deepEqual(silent, []);
  });

  it('names a thread that does not turn for too long, once', async () => {
    const { clock, silent, a } = watched();
    await clock.advance(silentMsMax);

    a.stop();
    await clock.advance(silentMsMax);
    assert.deepEqual(silent, []);
    await clock.advance(2 * everyMs);

    assert.deepEqual(silent, ['a']);
    await clock.advance(5 * silentMsMax);
    assert.deepEqual(silent, ['a']);
  });

  it('names a thread that never began to turn', async () => {
    const { clock, silent, watchdog } = watched();

    watchdog.watch('c', createPulse());
    await clock.advance(silentMsMax + 2 * everyMs);

    assert.deepEqual(silent, ['c']);
  });

  it('counts again from the start when a thread comes back to life', async () => {
    const { clock, silent, a } = watched();
    a.stop();
    await clock.advance(silentMsMax - everyMs);

    a.turnsAgain();
    await clock.advance(5 * silentMsMax);

    assert.deepEqual(silent, []);
  });

  it('does not take it for silence when the whole process stands still', async () => {
    const { clock, silent } = watched();

    for (let times = 0; times < 30; times++) {
      clock.jump(3_600_000);
      await clock.advance(everyMs / 2);
    }

    assert.deepEqual(silent, []);
  });

  it('does not add the time in which the process stood still to the silence of a thread', async () => {
    const { clock, silent, a } = watched();
    a.stop();
    await clock.advance(silentMsMax / 2);

    clock.jump(3_600_000);
    await clock.advance(silentMsMax / 4);
    assert.deepEqual(silent, []);
    await clock.advance(silentMsMax / 2);

    assert.deepEqual(silent, ['a']);
  });

  it('forgets a thread that ended, and everything when it is stopped', async () => {
    const { clock, silent, watchdog, a, b } = watched();

    a.forget();
    a.stop();
    await clock.advance(2 * silentMsMax);
    b.stop();
    watchdog.stop();
    await clock.advance(2 * silentMsMax);

    assert.deepEqual(silent, []);
  });
});
