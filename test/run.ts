import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { filesUnder, repositoryRoot } from './support/repository.ts';

/**
 * What `npm test` runs: every test/**\/*.test.ts, each file in a process of its own; benchmarks and the longer runs are
 * started by their own commands. A word on the command line picks the files whose path contains it.
 *
 * Prints one line a file, every failure as it comes, every skipped test with its reason, and the runner's own sums.
 * Ends with 1 where a test failed, a file ran no test, or nothing ran; with TIDEBASE_TEST_NO_SKIP=1 also where a test
 * was skipped.
 */
const compiledFolder = dirname(fileURLToPath(import.meta.url));
const root = repositoryRoot();

/** Of those that compute: more at once only takes the cores from each other. */
const filesAtOnce = Math.max(2, availableParallelism());
/** Folders whose files take longest: they begin first, so that no core waits at the end for the last of them. */
const slowFolders = ['test/simulation/', 'test/end-to-end/'];
/** Files that wait far more than they compute: they have a lane of their own beside the others. */
const waitingFiles: readonly string[] = [
  'test/end-to-end/full-disk.test.ts',
  'test/end-to-end/quota.test.ts',
  'test/contract/http.test.ts',
];
/** A file that hangs must not hang the run; the longest takes about a minute. */
const fileTimeoutMs = 5 * 60_000;

interface Failure {
  readonly failureType?: string;
  readonly cause?: unknown;
}

interface ResultData {
  readonly name: string;
  readonly nesting: number;
  readonly skip?: string | boolean | undefined;
  readonly message?: string;
  readonly details: { readonly type?: string | undefined; readonly error?: unknown };
}

/** What came of one file. */
interface FileReport {
  /** Its path from the root, in the sources. */
  readonly path: string;
  readonly compiled: string;
  /** Names of the suites around the current test, and its own. */
  readonly names: string[];
  passed: number;
  readonly failures: string[];
  readonly skips: string[];
  /** All it printed: shown where the file itself fails. */
  output: string;
  /** The runner's own closing lines: `tests 3`, `pass 2`, … */
  readonly sums: Map<string, number>;
}

const say = (line: string) => process.stdout.write(`${line}\n`);

function testFiles(words: readonly string[]): { readonly path: string; readonly compiled: string }[] {
  const sources = filesUnder(root, 'test').filter((path) => path.endsWith('.test.ts'));
  const wanted = sources.filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
  const isQuick = (path: string) => !slowFolders.some((folder) => path.startsWith(folder));
  const ordered = wanted.toSorted((a, b) => Number(isQuick(a)) - Number(isQuick(b)) || (a < b ? -1 : 1));
  return ordered.map((path) => {
    const compiled = join(compiledFolder, '..', path.replace(/\.ts$/, '.js'));
    if (!existsSync(compiled)) throw new Error(`${path} is not compiled: npm run build`);
    return { path, compiled };
  });
}

async function runFile(file: { readonly path: string; readonly compiled: string }): Promise<FileReport> {
  const report: FileReport = {
    ...file,
    names: [],
    passed: 0,
    failures: [],
    skips: [],
    output: '',
    sums: new Map(),
  };
  const began = performance.now();
  const events = run({ files: [file.compiled], concurrency: true, timeout: fileTimeoutMs });
  for await (const event of events as AsyncIterable<{ readonly type: string; readonly data: ResultData }>) {
    const { type, data } = event;
    if (type === 'test:stdout' || type === 'test:stderr') report.output += data.message ?? '';
    if (type === 'test:start') report.names[data.nesting] = data.name;
    if (type === 'test:pass') onPass(report, data);
    if (type === 'test:fail') onFail(report, data);
    if (type === 'test:diagnostic') onDiagnostic(report, data.message ?? '');
  }
  if (report.passed + report.failures.length + report.skips.length === 0) {
    fail(report, file.path, 'no test ran in this file');
  }
  sayEnd(report, performance.now() - began);
  return report;
}

/** The runner reports a file that it could not load, and one without tests, as a test with the file's name. */
function isWholeFile(report: FileReport, data: ResultData): boolean {
  return data.nesting === 0 && data.name === report.compiled;
}

function onPass(report: FileReport, data: ResultData): void {
  if (data.skip !== undefined && data.skip !== false) {
    const reason = typeof data.skip === 'string' && data.skip !== '' ? data.skip : 'no reason given';
    report.skips.push(`${titleOf(report, data)}: ${reason}`);
  } else if (data.details.type !== 'suite' && !isWholeFile(report, data)) {
    report.passed++;
  }
}

function onFail(report: FileReport, data: ResultData): void {
  const error = data.details.error as Failure | undefined;
  // A suite fails because of its tests, which have been told.
  if (error?.failureType === 'subtestsFailed') return;
  const cause = error?.cause ?? error;
  const shown = cause instanceof Error ? (cause.stack ?? cause.message) : inspect(cause);
  if (isWholeFile(report, data)) fail(report, report.path, `${shown}\n${report.output}`);
  else fail(report, titleOf(report, data), shown);
}

function fail(report: FileReport, title: string, shown: string): void {
  const told = `✖ ${title}\n${shown.trimEnd().replace(/^/gm, '    ')}\n`;
  report.failures.push(told);
  say(told);
}

function titleOf(report: FileReport, data: ResultData): string {
  return [report.path, ...report.names.slice(0, data.nesting), data.name].join(' › ');
}

function onDiagnostic(report: FileReport, message: string): void {
  const [, name, count] =
    /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/.exec(message) ?? [];
  if (name !== undefined) report.sums.set(name, Number(count));
}

function sayEnd({ path, passed, failures, skips }: FileReport, durationMs: number): void {
  const counts = [
    `${passed} passed`,
    ...(failures.length > 0 ? [`${failures.length} failed`] : []),
    ...(skips.length > 0 ? [`${skips.length} skipped`] : []),
    `${(durationMs / 1_000).toFixed(1)} s`,
  ];
  say(`${failures.length > 0 ? '✖' : '✔'} ${path} (${counts.join(', ')})`);
}

async function runAll(words: readonly string[]): Promise<FileReport[]> {
  const files = testFiles(words);
  const waiting = files.filter(({ path }) => waitingFiles.includes(path));
  const computing = files.filter(({ path }) => !waitingFiles.includes(path));
  const reports: FileReport[] = [];
  const lane = async (queue: typeof files) => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift())
      reports.push(await runFile(file));
  };
  await Promise.all([lane(waiting), ...Array.from({ length: filesAtOnce }, () => lane(computing))]);
  return reports;
}

/** The closing lines, as the runner's own reporter prints them, then the sums of this file's. Answers the exit code. */
function close(reports: readonly FileReport[], durationMs: number): number {
  const skips = reports.flatMap((report) => report.skips);
  const failures = reports.flatMap((report) => report.failures);
  const passed = reports.reduce((sum, report) => sum + report.passed, 0);
  if (skips.length > 0) say(`\nskipped:\n${skips.map((line) => `  ﹣ ${line}`).join('\n')}`);
  if (failures.length > 0) say(`\n✖ failing tests:\n\n${failures.join('\n')}`);
  for (const name of ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo']) {
    say(`ℹ ${name} ${reports.reduce((sum, { sums }) => sum + (sums.get(name) ?? 0), 0)}`);
  }
  say(`ℹ duration_ms ${durationMs.toFixed(0)}`);
  const skipsRefused = process.env.TIDEBASE_TEST_NO_SKIP === '1' && skips.length > 0;
  if (skipsRefused) say('nothing may be skipped here (TIDEBASE_TEST_NO_SKIP=1)');
  if (passed + failures.length === 0) say('no test ran');
  say(`${passed} passed, ${failures.length} failed, ${skips.length} skipped`);
  return failures.length > 0 || passed === 0 || skipsRefused ? 1 : 0;
}

process.chdir(root);
// Stacks in the words of the sources, in every test's own process.
process.execArgv.push('--enable-source-maps');
const beganAt = performance.now();
process.exitCode = close(await runAll(process.argv.slice(2)), performance.now() - beganAt);
