/**
 * `npm run measure -- semantic`: questions that find the texts which answer them in other words, through the server and its built-in
 * model, among real texts. A literal search finds none of them: question and text have no word of substance in common.
 * Ends with 1 where a bar is missed.
 *
 *   --texts=1000
 */
import type { SearchAnswer } from '../protocol/search.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, startMeasured } from './measured-server.ts';
import { numberOption } from './options.ts';
import { paraphrasePairs } from './paraphrase-pairs.ts';
import { packageDescriptions } from './paraphrases.ts';
import { postUntilTaken } from './put-texts.ts';

const others = numberOption('texts', isQuick ? 200 : 1_000);
const bars = { topFive: 0.7 };
const namespace = 'semantic';
const perRequest = 100;

await judged(async ({ tell }) => {
  const server = await startMeasured();
  const client = new Connections(server.process.url, server.key, 1);
  const post = async (path: string, body: object) =>
    JSON.parse(await client.post(path, Buffer.from(JSON.stringify(body)))) as unknown;
  await post('/v1/namespaces', { name: namespace, embed: { provider: 'service' } });
  const path = `/v1/namespaces/${namespace}`;
  const docs = [
    ...paraphrasePairs.map(({ text }, at) => ({ id: `answer-${at}`, text })),
    ...packageDescriptions(others).map((text, at) => ({ id: `other-${at}`, text })),
  ];
  const began = performance.now();
  for (let from = 0; from < docs.length; from += perRequest) {
    const body = Buffer.from(JSON.stringify({ docs: docs.slice(from, from + perRequest) }));
    await postUntilTaken(client, `${path}/docs`, body);
  }
  const seconds = (performance.now() - began) / 1_000;
  let [first, amongFive, literal] = [0, 0, 0];
  for (const [at, { query }] of paraphrasePairs.entries()) {
    const search = (body: object) => post(`${path}/search`, { limit: 5, ...body }) as Promise<SearchAnswer>;
    const ids = (await search({ semantic: query })).hits.map(({ id }) => id);
    if (ids[0] === `answer-${at}`) first++;
    if (ids.includes(`answer-${at}`)) amongFive++;
    if ((await search({ q: query })).hits.some(({ id }) => id === `answer-${at}`)) literal++;
  }
  client.close();
  await server.process.stop();
  const count = paraphrasePairs.length;
  tell(
    { name: `${docs.length} texts embedded and written`, value: `${seconds.toFixed(1)} s` },
    { name: `${count} questions: the text came first`, value: (first / count).toFixed(2) },
    {
      name: 'and among the first five',
      value: (amongFive / count).toFixed(2),
      bar: `≥ ${bars.topFive}`,
      ok: amongFive / count >= bars.topFive,
    },
    { name: 'found by a literal search', value: `${literal}`, bar: '0', ok: literal === 0 },
  );
});
