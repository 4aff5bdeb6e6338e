/**
 * Latencies in an open loop: requests begin at their intended times, whatever became of those before, and each latency counts from
 * there. The loop is a thread of this process; it follows up to some thousand requests a second, which bounds the rates.
 */
import { type RequestStream, runRequestLoop, type StreamResult } from '../request-loop.ts';
import type { CurveResult, PointResult } from './result.ts';
import type { BesidePhase, PassesPhase, RatesPhase, Stage, TextFigure } from './scenario.ts';
import { latencySummary, p99Of, ratesOf } from './statistics.ts';

const ratePerSecondMax = 3_000;

export interface OpenTarget {
  readonly stage: Stage;
  readonly keys: readonly string[];
  readonly connections: number;
}

export async function runStreams(
  { stage, keys, connections }: OpenTarget,
  streams: readonly RequestStream[],
  seconds: number,
  triesMax = 1,
): Promise<readonly StreamResult[]> {
  const { url } = stage.server.process;
  return runRequestLoop({ url, clients: keys, connections, streams, seconds, triesMax });
}

/** One point of all streams together. */
export function pointOf(label: string, ratePerSecond: number, results: readonly StreamResult[]): PointResult {
  return {
    label,
    ratePerSecond,
    sent: results.reduce((sum, { sent }) => sum + sent, 0),
    failures: summed(results.map(({ failures }) => failures)),
    notWarm: summed(results.map(({ notWarm }) => notWarm)),
    latencyMs: latencySummary(results.flatMap(({ latenciesMs }) => latenciesMs)),
    lateMs: p99Of(results.flatMap(({ lateMs }) => lateMs)),
  };
}

function summed(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const each of counts)
    for (const [name, count] of Object.entries(each)) sums.set(name, (sums.get(name) ?? 0) + count);
  return Object.fromEntries(sums);
}

/** `perSecond`: what the closed loop before it did. */
export async function runRatesPhase(
  target: OpenTarget,
  phase: RatesPhase,
  perSecond: number,
): Promise<CurveResult> {
  const { rateShares, rateSeconds } = target.stage.sizes;
  const points: PointResult[] = [];
  for (const rate of ratesOf(rateShares, perSecond, phase.ratePerSecondMax ?? ratePerSecondMax)) {
    const stream = { kind: phase.name, ratePerSecond: rate, requests: phase.requests };
    const results = await runStreams(target, [stream], rateSeconds);
    points.push(pointOf(`${Number(rate.toPrecision(3))} a second`, rate, results));
  }
  return { name: phase.name, over: 'rate', points };
}

export async function runBesidePhase(
  target: OpenTarget,
  phase: BesidePhase,
): Promise<{ readonly curve: CurveResult; readonly told: readonly TextFigure[] }> {
  const { name, ratePerSecond, requests, work } = phase;
  const seconds = target.stage.sizes.rateSeconds * 2;
  const streams = [{ kind: name, ratePerSecond, requests }];
  // What is read for the first time is not warm.
  await runStreams(target, streams, Math.min(seconds, 1));
  const alone = pointOf('alone', ratePerSecond, await runStreams(target, streams, seconds));
  const running = work.start();
  try {
    const beside = pointOf(`beside ${work.name}`, ratePerSecond, await runStreams(target, streams, seconds));
    return { curve: { name, over: 'step', points: [alone, beside] }, told: await running.stop() };
  } catch (error) {
    await running.stop();
    throw error;
  }
}

export async function runPassesPhase(target: OpenTarget, phase: PassesPhase): Promise<CurveResult> {
  const { name, ratePerSecond, requests, passes } = phase;
  const points: PointResult[] = [];
  for (const { name: label, before } of passes) {
    await before();
    const stream = { kind: label, ratePerSecond, requests };
    points.push(
      pointOf(label, ratePerSecond, await runStreams(target, [stream], requests.length / ratePerSecond)),
    );
  }
  return { name, over: 'step', points };
}
