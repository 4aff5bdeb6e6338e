/**
 * A mix at steady rates for long: what a server loses by the hour shows in nothing shorter.
 *
 * 1. Windows, one after the other; each has clients of its own, whose connections end with it.
 * 2. Then rest, so that what was begun ends; what is open then is compared with what was open after the first window.
 * 3. An orderly stop; the stored objects must be those that manifests name.
 *
 * Resident memory may grow by less than `slopeBytesMax` a minute over the second half. A quick run is too short for that
 * figure to say anything: it is told.
 */
import { must } from '../../src/base/assert.ts';
import { sleep } from '../judge.ts';
import { latencyText } from '../open-loop.ts';
import { openedSince, openFilesOf } from './open-files.ts';
import { type OpenTarget, pointOf, runStreams } from './open-rates.ts';
import type { CurveResult, JudgedFigure, PointResult } from './result.ts';
import type { SoakPhase } from './scenario.ts';
import { residentSlope } from './statistics.ts';
import { readStoredObjects, type StoredObjects } from './stored-objects.ts';
import type { MemoryWatch } from './watch-memory.ts';

const slopeBytesMax = 1e6;
/** Connections end a moment after their client. */
const goodbyeMs = 2_000;

export async function runSoakPhase(
  target: OpenTarget,
  phase: SoakPhase,
  watch: MemoryWatch,
): Promise<{ readonly curves: readonly CurveResult[]; readonly figures: readonly JudgedFigure[] }> {
  const { stage } = target;
  const { soakWindows, soakWindowSeconds, soakRestSeconds, isQuick } = stage.sizes;
  const ratePerSecond = phase.streams.reduce((sum, stream) => sum + stream.ratePerSecond, 0);
  const latencies = new Map<string, number[]>();
  const points: PointResult[] = [];
  const fromSeconds = watch.seconds();
  let openAtFirst = openFilesOf(stage.server.process.processId);
  for (let window = 1; window <= soakWindows; window++) {
    const results = await runStreams(target, phase.streams, soakWindowSeconds);
    points.push(pointOf(String(window), ratePerSecond, results));
    for (const { kind, latenciesMs } of results) {
      const known = latencies.get(kind) ?? [];
      for (const latency of latenciesMs) known.push(latency);
      latencies.set(kind, known);
    }
    if (window > 1) continue;
    await sleep(goodbyeMs);
    openAtFirst = openFilesOf(stage.server.process.processId);
  }
  const slope = residentSlope(watch.samples(), fromSeconds, watch.seconds());
  await sleep(Math.max(goodbyeMs, soakRestSeconds * 1_000));
  const more = openedSince(openAtFirst, openFilesOf(stage.server.process.processId));
  const stored = await stage.restart(([folder]) => readStoredObjects(must(folder, 'a data folder')));
  return {
    curves: [{ name: phase.name, over: 'time', points }],
    figures: [
      slopeFigure(slope, isQuick),
      {
        name: 'open files that were not open before',
        value: String(more.length),
        bar: '0',
        ok: more.length === 0,
        ...(more.length === 0 ? {} : { note: more.join('; ') }),
      },
      objectsFigure(stored),
      ...[...latencies].map(([kind, each]) => ({ name: kind, value: latencyText(each) })),
    ],
  };
}

function slopeFigure(bytesPerMinute: number, isQuick: boolean): JudgedFigure {
  const figure = {
    name: 'resident memory over the second half',
    value: `${(bytesPerMinute / 1e6).toFixed(2)} MB a minute`,
  };
  if (isQuick) return { ...figure, note: 'too short to be judged' };
  return { ...figure, bar: `< ${slopeBytesMax / 1e6} MB`, ok: bytesPerMinute < slopeBytesMax };
}

function objectsFigure({
  namespaces,
  objects,
  orphans,
  missing,
  retired,
  logObjects,
}: StoredObjects): JudgedFigure {
  return {
    name: 'stored objects that no manifest names, and named ones that are missing',
    value: `${orphans.length} and ${missing.length}`,
    bar: '0 and 0',
    ok: orphans.length === 0 && missing.length === 0,
    note:
      `${objects} objects of ${namespaces} namespaces, ${retired} of them replaced and waiting for their deletion; ` +
      `${logObjects} of logs${orphans.length > 0 ? `; ${orphans.slice(0, 3).join(', ')}` : ''}`,
  };
}
