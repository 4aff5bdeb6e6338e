/**
 * A mix at steady rates while several servers are restarted one after another, as the runbook says, in windows: those during which
 * the restarts go on, and one after them.
 */
import { must } from '../../src/base/assert.ts';
import { type OpenTarget, pointOf, runStreams } from './open-rates.ts';
import type { CurveResult, JudgedFigure, PointResult } from './result.ts';
import type { RestartsPhase } from './scenario.ts';

/** As `load-tests/README.md` tells: so often a request is asked before it counts as failed. */
const triesMax = 5;

export async function runRestartsPhase(
  target: OpenTarget,
  { name, streams }: RestartsPhase,
): Promise<{ readonly curve: CurveResult; readonly figures: readonly JudgedFigure[] }> {
  const { stage } = target;
  const { restartRounds, restartWindowSeconds } = stage.sizes;
  const { process: server } = stage.server;
  const restart = must(server.restartInTurn?.bind(server), 'several servers');
  const ratePerSecond = streams.reduce((sum, stream) => sum + stream.ratePerSecond, 0);
  const points: PointResult[] = [];
  let askedAgain = 0;
  let tookMs = 0;
  const play = async (): Promise<boolean> => {
    const began = performance.now();
    try {
      for (let round = 0; round < restartRounds; round++) await restart();
      return true;
    } finally {
      tookMs = performance.now() - began;
      isOver = true;
    }
  };
  let isOver = false;
  const window = async () => {
    const results = await runStreams(target, streams, restartWindowSeconds, triesMax);
    askedAgain += results.reduce((sum, result) => sum + result.askedAgain, 0);
    points.push(pointOf(String(points.length + 1), ratePerSecond, results));
  };
  await window();
  const [played] = await Promise.allSettled([
    play(),
    (async () => {
      while (!isOver) await window();
    })(),
  ]);
  if (played.status === 'rejected') throw played.reason;
  await window();
  const restarts = restartRounds * server.processIds.length;
  return {
    curve: { name, over: 'time', points },
    figures: [
      {
        name: 'servers restarted in turn',
        value: `${restarts} in ${(tookMs / 1_000).toFixed(1)} s`,
        note: `${points.length} windows of ${restartWindowSeconds} s; the first and the last are without a restart`,
      },
      {
        name: 'requests asked again',
        value: String(askedAgain),
        note: `after 429, 503 or no answer, ${triesMax} times at most: none failed that is not counted above`,
      },
    ],
  };
}
