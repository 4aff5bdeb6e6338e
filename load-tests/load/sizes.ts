/** How much of everything a run does: the full one, whose figures count, and the smoke run of `--quick`. */
export interface Sizes {
  readonly isQuick: boolean;
  /** Rounds of a closed loop, each against our server and the bare one; three at least, for their spread is the noise. */
  readonly rounds: number;
  readonly roundSeconds: number;
  /** Before the rounds, uncounted. */
  readonly warmUpSeconds: number;
  /** Rates of an open loop as shares of the closed loop's throughput. */
  readonly rateShares: readonly number[];
  readonly rateSeconds: number;
  /** The part of a scenario's data that is written. */
  readonly dataShare: number;
  /** How many windows a soak has, and how long each is. */
  readonly soakWindows: number;
  readonly soakWindowSeconds: number;
  /** By how many servers scenarios are played that do not say it: with three, behind HAProxy (`--servers=3`). */
  readonly servers: 1 | 3;
  /** How often all servers are restarted, and how long the windows are in which latency is told meanwhile. */
  readonly restartRounds: number;
  readonly restartWindowSeconds: number;
  /** How long a soak's server is left alone before it is judged. */
  readonly soakRestSeconds: number;
}

export const fullSizes: Sizes = {
  isQuick: false,
  rounds: 5,
  roundSeconds: 4,
  warmUpSeconds: 2,
  rateShares: [0.1, 0.25, 0.5, 0.7, 0.85],
  rateSeconds: 8,
  dataShare: 1,
  soakWindows: 60,
  soakWindowSeconds: 60,
  soakRestSeconds: 60,
  servers: 1,
  restartRounds: 3,
  restartWindowSeconds: 5,
};

export const quickSizes: Sizes = {
  isQuick: true,
  rounds: 3,
  roundSeconds: 1,
  warmUpSeconds: 1,
  rateShares: [0.1, 0.5],
  rateSeconds: 1.5,
  dataShare: 0.1,
  soakWindows: 4,
  soakWindowSeconds: 4,
  soakRestSeconds: 2,
  servers: 1,
  restartRounds: 1,
  restartWindowSeconds: 2,
};

/** A count of the full run, made smaller for a quick one; at least `least`. */
export function sizedCount({ dataShare }: Sizes, full: number, least = 1): number {
  return Math.max(least, Math.round(full * dataShare));
}
