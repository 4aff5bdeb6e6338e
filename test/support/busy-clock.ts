import { FakeClock } from './fake-clock.ts';

/** A clock by which each look takes a millisecond, so that work is long; it counts how often others had their turn. */
export class BusyClock extends FakeClock {
  yields = 0;
  override monotonic(): number {
    this.jump(1);
    return super.monotonic();
  }
  override yieldTurn(): Promise<void> {
    this.yields++;
    return super.yieldTurn();
  }
}
