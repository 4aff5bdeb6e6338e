/**
 * `npm run measure -- log-lines`: many short documents in one namespace, warm, in segments: lines of a log, about 300 bytes each,
 * the same ones in every run. Ends with 1 where a bar is missed or an answer is not what was counted.
 *
 *   --documents=1000000   --repetitions=50
 */
import { Chance } from '../test/simulation/chance.ts';
import { isQuick, judged } from './judge.ts';
import { frequentWord, type LogLine, logLines, rareWord, traceOf } from './log-line-texts.ts';
import { Connections, startMeasured } from './measured-server.ts';
import { numberOption } from './options.ts';
import { putTexts } from './put-texts.ts';
import { restartFlushed } from './restart-flushed.ts';
import { SearchClient, timedMeasurement } from './search-times.ts';

const documents = numberOption('documents', isQuick ? 20_000 : 1_000_000);
const repetitions = numberOption('repetitions', isQuick ? 10 : 50);
const seed = 20_260_101;
const namespace = 'log';
const connections = 4;
const tracesAsked = 5;
const bars = { searchMs: 10, countMs: 200 };

/** What the lines hold, counted as they go by. */
interface Counted {
  bytes: number;
  rare: number;
  frequent: number;
  readonly traces: string[];
}

function* countedLines(counted: Counted): Generator<readonly [string, string], undefined> {
  const everyTrace = Math.floor(documents / tracesAsked);
  let i = 0;
  for (const line of logLines(documents, new Chance(seed, 0))) {
    countLine(counted, line);
    if (i++ % everyTrace === everyTrace >> 1) counted.traces.push(traceOf(line));
    yield [line.id, line.text];
  }
  return undefined;
}

function countLine(counted: Counted, { text }: LogLine): void {
  counted.bytes += text.length;
  if (text.includes(rareWord)) counted.rare++;
  if (text.includes(frequentWord)) counted.frequent++;
}

await judged(async ({ say, tell }) => {
  const counted: Counted = { bytes: 0, rare: 0, frequent: 0, traces: [] };
  let server = await startMeasured();
  const writer = new Connections(server.process.url, server.key, connections);
  const began = performance.now();
  await putTexts(writer, namespace, countedLines(counted), { connections });
  writer.close();
  const seconds = (performance.now() - began) / 1_000;
  say(
    `${documents} lines of ${Math.round(counted.bytes / documents)} bytes, stored in ${seconds.toFixed(1)} s; ` +
      `"${rareWord}" in ${counted.rare}, "${frequentWord}" in ${counted.frequent}`,
  );
  server = await restartFlushed(server, [namespace]);
  const client = new SearchClient(server, namespace);
  const literal = (query: string, matching: number) => ({ query, isRegex: false, documents: matching });
  const searches = { p50MsMax: bars.searchMs };
  const selective = await client.timeSearches(
    counted.traces.map((trace) => literal(trace, 1)),
    repetitions,
  );
  tell(timedMeasurement('selective literal, limit 20', selective, searches));
  const frequent = await client.timeSearches([literal(frequentWord, counted.frequent)], repetitions);
  tell(timedMeasurement('frequent word, limit 20', frequent, searches));
  const counts = await client.timeCounts([literal(rareWord, counted.rare)], repetitions);
  tell(timedMeasurement('exact count of a word in 1 % of the lines', counts, { p50MsMax: bars.countMs }));
  client.close();
  await server.process.stop();
});
