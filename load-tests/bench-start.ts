import { type Measurement, median, spread } from './bench-report.ts';
import { startServer, temporaryFolder } from './server.ts';

/** From the start of the process to its first answer, and what it then weighs while nobody asks anything. */
const starts = 3;
const startBarMs = 1_500;
const idleMs = 3_000;
const residentBarMb = 250;

export async function benchStart(): Promise<Measurement[]> {
  const times: number[] = [];
  const residentMb: number[] = [];
  for (let i = 0; i < starts; i++) {
    const folder = temporaryFolder();
    const began = performance.now();
    const server = await startServer({ folder });
    const answer = await fetch(`${server.url}/healthz`);
    if (answer.status !== 200) throw new Error(`healthz answered ${answer.status}`);
    times.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    residentMb.push(server.residentBytes() / 1e6);
    await server.stop();
  }
  return [
    {
      name: 'start to first answer, empty folder',
      value: `${Math.round(median(times))} ms (median)`,
      bar: `≤ ${startBarMs} ms`,
      ok: median(times) <= startBarMs,
      note: `${starts} starts: ${spread(times, 0)} ms`,
    },
    {
      name: `resident memory, idle for ${idleMs / 1_000} s`,
      value: `${Math.round(median(residentMb))} MB (median)`,
      bar: `≤ ${residentBarMb} MB`,
      ok: median(residentMb) <= residentBarMb,
      note: `${starts} starts: ${spread(residentMb, 0)} MB`,
    },
  ];
}
