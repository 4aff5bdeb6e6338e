/**
 * The same questions to our server, through HTTP, and to somebody else's program in this process, one at a time. In each round every
 * question is asked some times of one and then of the other; medians count.
 */
import { median } from '../bench-report.ts';
import { Connections } from '../measured-server.ts';
import type { LoopRequest } from '../request-loop.ts';
import type { JudgedFigure, RatioResult } from './result.ts';
import type { PeerPhase, Stage } from './scenario.ts';
import { geometricMean } from './statistics.ts';

const timesAsked = 5;

export async function runPeerPhase(
  { server: { process: server }, sizes }: Stage,
  keys: readonly string[],
  { name, questions, close }: PeerPhase,
): Promise<{ readonly ratio: RatioResult; readonly figures: readonly JudgedFigure[] }> {
  const clients = keys.map((key) => new Connections(server.url, key, 1));
  const ask =
    ({ client, method, path, body, headers }: LoopRequest) =>
    async () => {
      const sent = body === undefined ? null : Buffer.from(body);
      const answer = await clients[client]?.send(method, path, sent, undefined, headers);
      if (answer?.status !== 200) throw new Error(`${path}: ${answer?.status} ${answer?.text.slice(0, 300)}`);
    };
  const times = questions.map(() => ({ ours: [] as number[], theirs: [] as number[] }));
  try {
    for (let round = 0; round < sizes.rounds; round++) {
      for (const [at, { ours, theirs }] of questions.entries()) {
        times[at]?.ours.push(await medianMs(ask(ours)));
        times[at]?.theirs.push(await medianMs(theirs));
      }
    }
  } finally {
    for (const client of clients) client.close();
    close();
  }
  const rounds = Array.from({ length: sizes.rounds }, (_, round) =>
    geometricMean(times.map(({ ours, theirs }) => at(ours, round) / at(theirs, round))),
  );
  const figures = questions.map((question, index) => ({
    name: `${question.name}: ours, ${name}`,
    value: `${median(times[index]?.ours ?? []).toFixed(2)} ms, ${median(times[index]?.theirs ?? []).toFixed(2)} ms`,
  }));
  return { ratio: { name: `time, of ${name}`, better: 'lower', rounds }, figures };
}

const at = (values: readonly number[], round: number) => values[round] ?? Number.NaN;

async function medianMs(ask: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let time = 0; time < timesAsked; time++) {
    const began = performance.now();
    await ask();
    took.push(performance.now() - began);
  }
  return median(took);
}
