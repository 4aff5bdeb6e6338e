/**
 * What `npm test` runs: every test/**\/*.test.ts, in the processes that `support/test-jobs.ts` plans; benchmarks and the
 * longer runs are started by their own commands. A word on the command line picks the files whose path contains it.
 *
 * Prints one line a file, every failure as it comes, what the process of a failed test printed, every skipped test with its
 * reason, and the runner's own sums.
 * Ends with 1 where a test failed, a file ran no test, or nothing ran; with TIDEBASE_TEST_NO_SKIP=1 also where a test
 * was skipped. With TIDEBASE_TEST_SLOWEST=N it names the N files that took longest; with TIDEBASE_TEST_COSTS=1 it writes
 * what each took, which the next run is planned by.
 *
 * With TIDEBASE_TEST_AGAIN=N up to N files that failed run once more when all others are through, each alone. What passes
 * then is told apart and fails nothing: a test that loses a race against the machine is to be mended, but says little about
 * the commit. More than N failed files aren't tried again.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { filesUnder, repositoryRoot } from './support/repository.ts';
import { cpuLineStart } from './support/shared-process.ts';
import { type FileCost, writeCosts } from './support/test-costs.ts';
import { entryOf, nextJob, type TestFile, type TestJob, testJobs } from './support/test-jobs.ts';

const compiledFolder = dirname(fileURLToPath(import.meta.url));
const root = repositoryRoot();

const cores = Math.max(2, availableParallelism());
/** A file that hangs must not hang the run; the longest takes about a minute. */
const fileTimeoutMs = 5 * 60_000;
/** Its own limit comes before its process's: then its hooks end what it has started. */
const endMsMax = 30_000;
/** How much of what a process printed is told where a test in it failed: the end, where its servers' errors are. */
const toldCharactersMax = 20_000;
const slowestTold = Number(process.env.TIDEBASE_TEST_SLOWEST ?? 0);
const againMax = Number(process.env.TIDEBASE_TEST_AGAIN ?? 0);

interface Failure {
  readonly failureType?: string;
  readonly cause?: unknown;
}

interface ResultData {
  readonly name: string;
  readonly nesting: number;
  readonly skip?: string | boolean | undefined;
  readonly message?: string;
  readonly details: {
    readonly type?: string | undefined;
    readonly error?: unknown;
    readonly duration_ms?: number;
  };
}

interface TestEvent {
  readonly type: string;
  readonly data: ResultData;
}

/** What came of one file. */
interface FileReport {
  readonly path: string;
  /** Names of the suites around the current test, and its own. */
  readonly names: string[];
  passed: number;
  readonly failures: string[];
  readonly skips: string[];
  durationMs: number;
  /** What all cores together computed for it; null where its process did not tell. */
  cpuMs: number | null;
  /** It was through before its process ended. */
  ended: boolean;
}

/** What came of one process. */
interface JobReport {
  readonly files: readonly FileReport[];
  /** Failed, though each of its tests passed. */
  readonly failures: string[];
  /** All it printed: shown where the process itself fails. */
  output: string;
  /** The runner's own closing lines: `tests 3`, `pass 2`, … */
  readonly sums: Map<string, number>;
}

/** The process that runs, and the module it began with, by which the runner calls it. */
interface Running {
  readonly job: TestJob;
  readonly entry: string;
  readonly report: JobReport;
}

/** What came of the files that failed, when each ran alone. */
interface SecondRun {
  /** Files that failed beside others only. */
  readonly passed: readonly string[];
  /** All that counts as failed. */
  readonly failures: readonly string[];
}

const say = (line: string) => process.stdout.write(`${line}\n`);

function testFiles(words: readonly string[]): TestFile[] {
  const sources = filesUnder(root, 'test').filter((path) => path.endsWith('.test.ts'));
  const wanted = sources.filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
  return wanted.map((path) => {
    const compiled = join(compiledFolder, '..', path.replace(/\.ts$/, '.js'));
    if (!existsSync(compiled)) throw new Error(`${path} is not compiled: npm run build`);
    return { path, compiled };
  });
}

function fileReport({ path }: TestFile): FileReport {
  return { path, names: [], passed: 0, failures: [], skips: [], durationMs: 0, cpuMs: null, ended: false };
}

/** Files are loaded one after another by a module made for them. */
async function runJob(job: TestJob, scratch: string, index: number): Promise<JobReport> {
  const entry = join(scratch, `${index}.mjs`);
  writeFileSync(entry, entryOf(job, fileTimeoutMs));
  const report: JobReport = { files: job.files.map(fileReport), failures: [], output: '', sums: new Map() };
  const running: Running = { job, entry, report };
  const timeout = fileTimeoutMs * (job.files.length > 1 ? 2 : 1) + endMsMax;
  const events = run({ files: [entry], concurrency: true, timeout });
  for await (const event of events as AsyncIterable<TestEvent>) onEvent(running, event);
  onEnd(running);
  return report;
}

function onEvent(running: Running, { type, data }: TestEvent): void {
  const { report } = running;
  if (type === 'test:stdout' || type === 'test:stderr') onOutput(report, data.message ?? '');
  if (type === 'test:diagnostic') onDiagnostic(report, data.message ?? '');
  if (type !== 'test:start' && type !== 'test:pass' && type !== 'test:fail') return;
  if (data.nesting === 0 && data.name === running.entry) {
    if (type === 'test:fail') onProcessFail(running, data);
    return;
  }
  onTestOfFile(report, type, data);
}

/** Each file is a suite. */
function onTestOfFile(report: JobReport, type: string, data: ResultData): void {
  const file = report.files.find(({ ended }) => !ended);
  if (file === undefined) return;
  if (data.nesting > 0) return onTest(file, type, { ...data, nesting: data.nesting - 1 });
  if (type === 'test:start') return;
  if (type === 'test:fail') onFail(file, file.path, data);
  endFile(file, data.details.duration_ms ?? 0);
}

function onTest(file: FileReport, type: string, data: ResultData): void {
  const { names } = file;
  if (type === 'test:start') names[data.nesting] = data.name;
  const title = [file.path, ...names.slice(0, data.nesting), data.name].join(' › ');
  if (type === 'test:pass') onPass(file, title, data);
  if (type === 'test:fail') onFail(file, title, data);
}

function onPass(file: FileReport, title: string, data: ResultData): void {
  if (data.skip !== undefined && data.skip !== false) {
    const reason = typeof data.skip === 'string' && data.skip !== '' ? data.skip : 'no reason given';
    file.skips.push(`${title}: ${reason}`);
  } else if (data.details.type !== 'suite') {
    file.passed++;
  }
}

function onFail(file: FileReport, title: string, data: ResultData): void {
  const error = data.details.error as Failure | undefined;
  // A suite fails because of its tests, which have been told.
  if (error?.failureType === 'subtestsFailed') return;
  fail(file.failures, title, shownError(error));
}

function shownError(error: Failure | undefined): string {
  const cause = error?.cause ?? error;
  return cause instanceof Error ? (cause.stack ?? cause.message) : inspect(cause);
}

/** The process ended with failure: it could not load a file, crashed, hung, or an error came after its tests. */
function onProcessFail({ job, report }: Running, data: ResultData): void {
  const error = data.details.error as Failure | undefined;
  if (error?.failureType === 'subtestsFailed') return;
  const files = report.files.length > 1 ? `\n${job.files.map(({ path }) => path).join('\n')}` : '';
  fail(report.failures, `the process of ${job.title}`, `${shownError(error)}${files}\n${report.output}`);
}

/** A process that ended early leaves files that were not through: the first of them ended it. */
function onEnd({ report }: Running): void {
  const [ender, ...others] = report.files.filter(({ ended }) => !ended);
  if (ender !== undefined) fail(report.failures, ender.path, `its process ended here\n${report.output}`);
  for (const { path } of others) fail(report.failures, path, `did not run: ${ender?.path} ended its process`);
  // Each file of several was told as a suite.
  const suites = report.sums.get('suites') ?? 0;
  report.sums.set('suites', Math.max(0, suites - report.files.length));
  for (const file of report.files) sayEnd(file);
  const printed = report.output.trimEnd().slice(-toldCharactersMax);
  if (printed !== '' && report.files.some(({ failures }) => failures.length > 0)) {
    say(`  printed by the process of ${report.files.map(({ path }) => path).join(', ')}:\n${printed}\n`);
  }
}

function endFile(file: FileReport, durationMs: number): void {
  file.ended = true;
  file.durationMs = durationMs;
  if (file.passed + file.failures.length + file.skips.length === 0) {
    fail(file.failures, file.path, 'no test ran in this file');
  }
}

function fail(failures: string[], title: string, shown: string): void {
  const told = `✖ ${title}\n${shown.trimEnd().replace(/^/gm, '    ')}\n`;
  failures.push(told);
  say(told);
}

function onDiagnostic(report: JobReport, message: string): void {
  const [, name, count] =
    /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/.exec(message) ?? [];
  if (name !== undefined) report.sums.set(name, Number(count));
  else report.output += `${message}\n`;
}

/** What the process printed; lines about what its files computed are for this program alone. */
function onOutput(report: JobReport, text: string): void {
  for (const line of text.split(/(?<=\n)/)) {
    const [start, path, ms] = line.trimEnd().split(' ');
    const file = start === cpuLineStart ? report.files.find((file) => file.path === path) : undefined;
    if (file === undefined) report.output += line;
    else file.cpuMs = Number(ms);
  }
}

function sayEnd({ path, passed, failures, skips, durationMs, cpuMs, ended }: FileReport): void {
  if (!ended) return;
  const counts = [
    `${passed} passed`,
    ...(failures.length > 0 ? [`${failures.length} failed`] : []),
    ...(skips.length > 0 ? [`${skips.length} skipped`] : []),
    `${(durationMs / 1_000).toFixed(1)} s`,
    ...(cpuMs === null ? [] : [`${(cpuMs / 1_000).toFixed(1)} s of a core`]),
  ];
  say(`${failures.length > 0 ? '✖' : '✔'} ${path} (${counts.join(', ')})`);
}

async function runJobs(jobs: readonly TestJob[]): Promise<JobReport[]> {
  const waiting = new Set(jobs);
  const running = new Map<TestJob, Promise<void>>();
  const scratch = mkdtempSync(join(tmpdir(), 'tidebase-tests-'));
  const reports: JobReport[] = [];
  let begun = 0;
  const ran = async (job: TestJob) => {
    reports.push(await runJob(job, scratch, begun++));
    running.delete(job);
  };
  while (waiting.size + running.size > 0) {
    const job = nextJob([...waiting], [...running.keys()], cores);
    if (job === undefined) {
      await Promise.race(running.values());
      continue;
    }
    waiting.delete(job);
    running.set(job, ran(job));
  }
  rmSync(scratch, { recursive: true, force: true });
  return reports;
}

/** Where few files failed, runs each of them alone. Answers the files that passed then, and those that failed again. */
async function runAgain(reports: readonly JobReport[]): Promise<SecondRun> {
  const failed = reports.filter(hasFailed).flatMap(({ files, failures }) => {
    const own = files.filter((file) => file.failures.length > 0 || !file.ended);
    // A process that failed, though each of its tests passed, does not say which file did it.
    return failures.length > 0 && own.length === 0 ? files : own;
  });
  if (failed.length === 0 || failed.length > againMax) return { passed: [], failures: failuresOf(reports) };
  const second: JobReport[] = [];
  for (const { path } of failed) {
    say(`\nagain, alone: ${path}`);
    const job = testJobs(testFiles([path])).find(({ files }) => files.some((file) => file.path === path));
    if (job === undefined) throw new Error(`${path} is no test file`);
    second.push(...(await runJobs([job])));
  }
  const passed = second.filter((report) => !hasFailed(report)).flatMap(({ files }) => files);
  return { passed: passed.map(({ path }) => path), failures: failuresOf(second) };
}

const hasFailed = ({ files, failures }: JobReport) =>
  failures.length > 0 || files.some((file) => file.failures.length > 0);

const failuresOf = (reports: readonly JobReport[]) =>
  [...reports.flatMap(({ files }) => files), ...reports].flatMap(({ failures }) => failures);

/** Files that failed or left out a test tell nothing of what they take. */
function costsOf(files: readonly FileReport[]): Map<string, FileCost> {
  const costs = new Map<string, FileCost>();
  for (const { path, failures, skips, durationMs, cpuMs } of files) {
    if (failures.length + skips.length > 0 || cpuMs === null) continue;
    costs.set(path, { seconds: durationMs / 1_000, coreSeconds: cpuMs / 1_000 });
  }
  return costs;
}

function saySlowest(files: readonly FileReport[]): void {
  const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, slowestTold);
  for (const { path, durationMs } of slowest) say(`${(durationMs / 1_000).toFixed(1)} s ${path}`);
}

/** The closing lines, as the runner's own reporter prints them, then the sums of this file's. Answers the exit code. */
function close(
  reports: readonly JobReport[],
  { passed: raced, failures }: SecondRun,
  durationMs: number,
): number {
  const files = reports.flatMap((report) => report.files);
  const skips = files.flatMap((file) => file.skips);
  const passed = files.reduce((sum, file) => sum + file.passed, 0);
  saySlowest(files);
  if (process.env.TIDEBASE_TEST_COSTS === '1')
    writeCosts(costsOf(files), (path) => existsSync(join(root, path)));
  if (skips.length > 0) say(`\nskipped:\n${skips.map((line) => `  ﹣ ${line}`).join('\n')}`);
  if (failures.length > 0) say(`\n✖ failing tests:\n\n${failures.join('\n')}`);
  for (const name of ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo']) {
    say(`ℹ ${name} ${reports.reduce((sum, { sums }) => sum + (sums.get(name) ?? 0), 0)}`);
  }
  say(`ℹ duration_ms ${durationMs.toFixed(0)}`);
  const skipsRefused = process.env.TIDEBASE_TEST_NO_SKIP === '1' && skips.length > 0;
  if (skipsRefused) say('nothing may be skipped here (TIDEBASE_TEST_NO_SKIP=1)');
  if (passed + failures.length === 0) say('no test ran');
  for (const path of raced) say(`${path} failed beside others and passed alone: mend its race`);
  say(`${passed} passed, ${failures.length} failed, ${skips.length} skipped`);
  return failures.length > 0 || passed === 0 || skipsRefused ? 1 : 0;
}

process.chdir(root);
// Stacks in the words of the sources, in every test's own process.
process.execArgv.push('--enable-source-maps');
const beganAt = performance.now();
const reports = await runJobs(testJobs(testFiles(process.argv.slice(2))));
process.exitCode = close(reports, await runAgain(reports), performance.now() - beganAt);
