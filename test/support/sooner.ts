import { limits } from '../../protocol/limits.ts';

/**
 * Loaded into a server before everything else (`node --import`), in all of its threads: what a server does within minutes or
 * hours it does within seconds. For tests of what has happened by then; a server that people run has no such setting.
 *
 * TIDEBASE_TEST_CACHE_SWEEP_MS: when it sweeps its cache; much later than any test where it is not given.
 */
const cacheSweepAfterMs = Number(process.env.TIDEBASE_TEST_CACHE_SWEEP_MS ?? 3_600_000);

Object.assign(limits, {
  flushAfterMs: 1_000,
  retiredGraceMs: 1_000,
  deletedRowsKeptMs: 2_000,
  cacheSweepAfterMs,
} satisfies Partial<Record<keyof typeof limits, number>>);
