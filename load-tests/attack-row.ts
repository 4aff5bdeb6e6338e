import { memoryAllowanceBytes, memoryBytes, type Watched } from './attack-scene.ts';
import { type AttackOutcome, attackerSteps } from './attacker.ts';
import { measurementLine } from './bench-report.ts';
import { percentile } from './open-loop.ts';
import type { StreamResult } from './request-loop.ts';

/** What is judged of an attack, and how it is said. */
const searchP99TimesIdle = 10;
const searchP99MsMin = 40;
const searchP999MsMax = 250;
const healthP99MsMax = 50;
const mixP99MsMax = 100;
/** The part of the processor's seconds that must be charged to some share. */
const chargedPartMin = 0.8;

export interface Row {
  readonly name: string;
  readonly about: string;
  /** None in the mix. */
  readonly idle: readonly StreamResult[];
  readonly beside: readonly StreamResult[];
  readonly watched: Watched;
  readonly outcome: AttackOutcome;
  /** What attackers and neighbours took of the same cores. */
  readonly clientsCpuSeconds: number;
  readonly isMemoryJudged: boolean;
  readonly isHealthJudged: boolean;
}

interface Verdict {
  readonly what: string;
  readonly ok: boolean;
}

const latenciesOf = (results: readonly StreamResult[], kind: string): readonly number[] =>
  results.find((result) => result.kind === kind)?.latenciesMs ?? [];

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, times) => sum + times, 0);

const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0);
const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

function verdictsOf(row: Row): Verdict[] {
  const { beside, watched, idle } = row;
  const failed = beside.reduce((sum, { failures }) => sum + sumOf(failures), 0);
  const verdicts: Verdict[] = [
    {
      what: watched.ending === null ? 'same process' : `the process ended: ${watched.ending}`,
      ok: watched.ending === null,
    },
    { what: `${failed} failed`, ok: failed === 0 },
  ];
  const judge = (what: string, value: number, most: number) =>
    verdicts.push({ what: `${what} ${ms(value)} ≤ ${ms(most)} ms`, ok: value <= most });
  const search = latenciesOf(beside, 'search');
  if (idle.length > 0) {
    const idleP99 = percentile(latenciesOf(idle, 'search'), 0.99);
    judge('search p99', percentile(search, 0.99), Math.max(searchP99TimesIdle * idleP99, searchP99MsMin));
    judge('p99.9', percentile(search, 0.999), searchP999MsMax);
  } else {
    for (const kind of ['read', 'search'])
      judge(`${kind} p99`, percentile(latenciesOf(beside, kind), 0.99), mixP99MsMax);
  }
  if (row.isHealthJudged)
    judge('healthz p99', percentile(latenciesOf(beside, 'healthz'), 0.99), healthP99MsMax);
  if (row.isMemoryJudged) {
    const most = memoryBytes + memoryAllowanceBytes;
    const { residentBytesMax } = watched;
    verdicts.push({
      what: `resident ${megabytes(residentBytesMax)} ≤ ${megabytes(most)}`,
      ok: residentBytesMax <= most,
    });
  }
  const charged = watched.chargedSeconds / watched.cpuSeconds;
  verdicts.push({
    what: `charged ${Math.round(charged * 100)} % ≥ ${chargedPartMin * 100} %`,
    ok: charged >= chargedPartMin,
  });
  return verdicts;
}

const latencies = (values: readonly number[]): string => {
  const at = (share: number) => ms(percentile(values, share));
  return `p50 ${at(0.5)}, p99 ${at(0.99)}, p99.9 ${at(0.999)}, max ${at(1)} ms`;
};

const countsText = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, times]) => `${times} × ${what}`)
    .join(', ');

/** Lines for people, and whether every bar is held. */
export function rowText(row: Row): { readonly text: string; readonly ok: boolean } {
  const { idle, beside, watched, outcome } = row;
  const verdicts = verdictsOf(row);
  const ok = verdicts.every((verdict) => verdict.ok);
  const value = `search ${latencies(latenciesOf(beside, 'search'))}`;
  const lines = [
    measurementLine({
      name: row.name,
      value,
      ok,
      bar: verdicts.map((one) => `${one.ok ? '' : 'NOT '}${one.what}`).join('; '),
    }),
    `    what     ${row.about}`,
  ];
  if (idle.length > 0)
    lines.push(
      `    idle     search ${latencies(latenciesOf(idle, 'search'))}; ` +
        `${countsText(Object.assign({}, ...idle.map(({ failures }) => failures))) || '0'} failed`,
    );
  for (const { kind, latenciesMs, sent, failures, notWarm } of beside) {
    const failed = sumOf(failures) === 0 ? '' : `; FAILED ${countsText(failures)}`;
    const cold = sumOf(notWarm) === 0 ? '' : `; not warm: ${countsText(notWarm)}`;
    lines.push(`    ${kind.padEnd(14)} ${sent} sent, ${latencies(latenciesMs)}${failed}${cold}`);
  }
  lines.push(
    `    server   resident ${megabytes(watched.residentBytesMax)} at most (${megabytes(watched.anonymousBytesMax)} without files), ` +
      `${watched.cpuSeconds.toFixed(1)} s of processor: ${watched.busiest}`,
    `    held     ${watched.holds.join(', ') || 'nothing is told'}`,
    `    clients  ${row.clientsCpuSeconds.toFixed(1)} s of processor, the attackers' ${(outcome.clientCpuMs / 1_000).toFixed(1)} s of it at nice ${attackerSteps}`,
    `    attack   ${countsText(outcome.outcomes) || 'nothing came of it'}; ${Math.round(outcome.cpuMs)} ms of processor in its answers`,
    ...Object.entries(outcome.said).map(([what, text]) => `    said     ${what}: ${text}`),
    `    turns    longest: ${watched.longestTurns.join(', ') || 'none is told'}`,
  );
  return { text: lines.join('\n'), ok };
}
