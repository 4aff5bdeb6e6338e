import type { Clock } from '../../src/base/clock.ts';
import type { Logger } from '../../src/base/log.ts';
import type { Random } from '../../src/base/random.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';

/** What the log's thread needs of the outside. */
export interface LogComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}
