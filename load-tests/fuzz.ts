/**
 * `npm run fuzz`: requests that are made from the OpenAPI document, from the tools' schemas and for the authorization server, right,
 * nearly right and wrong, sent to a server of its own. Each must be answered with a status that is promised and in its shape, none
 * with 500, and by the same process throughout.
 *
 *   --requests=100000   how many
 *   --seed=…            draws the same requests again
 *   --from=…            begins with the request of that number: with --requests=1 it is sent alone
 */
import { runFuzz } from './fuzz-run.ts';
import { judged } from './judge.ts';
import { numberOption, seedOption } from './options.ts';
import { startServer } from './server.ts';

const requests = numberOption('requests', 100_000);
const seed = seedOption();
const from = numberOption('from', 1) - 1;

/** Providers that nobody listens for: keys of theirs are refused without a call to anybody. */
const nobody = 'http://127.0.0.1:9';
const env = {
  TIDEBASE_COMMIT_MS: '20',
  OPENAI_BASE_URL: nobody,
  COHERE_BASE_URL: nobody,
  GOOGLE_BASE_URL: nobody,
  MISTRAL_BASE_URL: nobody,
};

await judged(async ({ say, tell }) => {
  say(`${requests} requests of seed ${seed}`);
  // Without a supervisor: a process that ends is not started again.
  const server = await startServer({ env });
  const began = performance.now();
  const report = await runFuzz({ url: server.url, seed, requests, from });
  const seconds = (performance.now() - began) / 1_000;
  for (const { number, what, request, answer } of report.failures)
    say(`--from=${number + 1} --seed=${seed}: ${what}\n  ${request}\n  ${answer}`);
  const statuses = [...report.statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${status}: ${count}`);
  say(`answers by status: ${statuses.join(', ')}; ${seconds.toFixed(0)} s`);
  const kinds = [...report.kinds].map(([kind, count]) => `${count} ${kind}`);
  say(`requests by kind: ${kinds.join(', ')}`);
  const never = report.known.filter((name) => !report.succeeded.has(name));
  say(`operations and tools that never succeeded: ${never.join(', ') || 'none'}`);
  const isSent = report.sent === requests;
  tell({
    name: 'requests answered',
    value: String(report.sent),
    bar: String(requests),
    ok: isSent,
    note: `seed ${seed}`,
  });
  const failed = report.failures.length;
  tell({
    name: 'answers that are wrong',
    value: String(failed),
    bar: '0',
    ok: failed === 0,
    note: 'listed above',
  });
  const fiveHundred = report.statuses.get(500) ?? 0;
  tell({ name: 'answers of 500', value: String(fiveHundred), bar: '0', ok: fiveHundred === 0, note: '' });
  // Rejects where the process has ended by itself.
  await server.stop();
});
