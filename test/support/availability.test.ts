import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Availability } from './availability.ts';

describe('availability', () => {
  /** Asks at a moment; the answered function lets it end at another one. */
  function world() {
    let now = 0;
    const availability = new Availability(() => now);
    const at = (ms: number) => {
      now = ms;
    };
    const ask = () => {
      let end = (_error: Error | null) => {};
      const asked = availability.asked(
        () =>
          new Promise<void>((resolve, reject) => {
            end = (error) => (error === null ? resolve() : reject(error));
          }),
      );
      const settled = asked.catch(() => {});
      return (error: Error | null = null) => {
        end(error);
        return settled;
      };
    };
    return { availability, at, ask };
  }

  it('an answer ends what began with the first question that had none', async () => {
    const { availability, at, ask } = world();
    const first = ask();
    at(100);
    await first(new Error('no'));
    at(700);
    const second = ask();
    at(1_000);
    assert.equal(availability.longestMs, 1_000);
    await second();

    at(5_000);
    assert.equal(availability.longestMs, 1_000);
    assert.deepEqual(availability.tookMs, [300]);
    assert.equal(availability.answers, 1);
  });

  it('while another question is answered, one that hangs counts from that answer on', async () => {
    const { availability, at, ask } = world();
    const hanging = ask();
    at(10);
    const other = ask();
    at(20);
    await other();
    at(500);
    assert.equal(availability.longestMs, 480);

    availability.restart();
    at(600);
    await hanging();
    assert.equal(availability.longestMs, 100);
  });
});
