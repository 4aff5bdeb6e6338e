import { runSeed } from './world.ts';

const first = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 20);
const trace = process.argv[4] === 'trace' ? (line: string) => process.stdout.write(`${line}\n`) : null;
const t = performance.now();
const cpu = process.cpuUsage();
let bad = 0;
for (let seed = first; seed < first + count; seed++) {
  try {
    const r = await runSeed(seed, trace);
    if (count <= 30)
      process.stdout.write(
        `${seed} ${r.hash} ev=${r.events} ms=${r.virtualMs.toFixed(0)} ${JSON.stringify([...r.faults])}\n`,
      );
    if (count <= 3) process.stdout.write(`${JSON.stringify([...r.answers])}\n`);
    if (r.violations.length > 0) bad++;
    for (const v of r.violations)
      process.stdout.write(`VIOLATION seed ${seed} ${v.kind}: ${v.text.slice(0, 3000)}\n`);
  } catch (e) {
    bad++;
    process.stdout.write(`FAIL seed ${seed} ${String((e as Error).stack)}\n`);
  }
}
const u = process.cpuUsage(cpu);
process.stdout.write(
  `${((performance.now() - t) / count).toFixed(1)} ms a seed, cpu ${((u.user + u.system) / 1000 / count).toFixed(1)}, bad ${bad}\n`,
);
