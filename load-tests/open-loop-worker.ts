/**
 * The thread of an open loop: requests begin at their intended times whatever became of those before, and each latency
 * counts from the intended time. A client that waits for its answers would measure a server that stalls as a quick one.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Connections } from './measured-server.ts';
import type { OpenLoop } from './open-loop.ts';

const tickMs = 1;

const loop = workerData as OpenLoop;
const client = new Connections(loop.url, loop.key, loop.connections);
const latenciesMs: number[] = [];
/** Seconds since the start, of each latency. */
const startedAtS: number[] = [];
let failures = 0;
let sent = 0;
let answered = 0;
const beganAt = performance.now();
const timer = setInterval(sendDue, tickMs);

function sendDue(): void {
  const now = performance.now();
  for (; sent < loop.ratePerSecond * loop.seconds; sent++) {
    const intendedAt = beganAt + (sent * 1_000) / loop.ratePerSecond;
    if (intendedAt > now) return;
    send(loop.paths[sent % loop.paths.length] ?? '', intendedAt);
  }
  clearInterval(timer);
}

function send(path: string, intendedAt: number): void {
  client
    .get(path)
    .then(
      () => {
        latenciesMs.push(performance.now() - intendedAt);
        startedAtS.push((intendedAt - beganAt) / 1_000);
      },
      () => failures++,
    )
    .finally(end);
}

function end(): void {
  answered++;
  if (answered < loop.ratePerSecond * loop.seconds) return;
  client.close();
  parentPort?.postMessage({ latenciesMs, startedAtS, failures });
}
