import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative } from 'node:path';
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

/** Test files wait more than they compute: one more than the cores is right for a small machine. */
const filesAtOnce = Math.max(2, availableParallelism());
/** A file that hangs must not hang the run; the longest takes about a minute. */
const fileTimeoutMs = 10 * 60_000;

interface Failure {
  readonly failureType?: string;
  readonly cause?: unknown;
}

interface ResultData {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string | undefined;
  readonly skip?: string | boolean | undefined;
  readonly details: {
    readonly duration_ms: number;
    readonly type?: string | undefined;
    readonly error?: unknown;
  };
}

/** What is known of a file while its results come in. */
interface FileReport {
  /** Names of the suites around the current test, and its own. */
  readonly names: string[];
  passed: number;
  failed: number;
  skipped: number;
  output: string;
}

const reports = new Map<string, FileReport>();
const skips: string[] = [];
const failures: string[] = [];
const sums: string[] = [];

const say = (line: string) => process.stdout.write(`${line}\n`);
const shownPath = (file: string) => `test/${relative(compiledFolder, file).replace(/\.js$/, '.ts')}`;

function reportOf(file: string): FileReport {
  let report = reports.get(file);
  if (report === undefined) {
    report = { names: [], passed: 0, failed: 0, skipped: 0, output: '' };
    reports.set(file, report);
  }
  return report;
}

function compiledTests(words: readonly string[]): string[] {
  const sources = filesUnder(root, 'test').filter((path) => path.endsWith('.test.ts'));
  const wanted = sources.filter((path) => words.length === 0 || words.some((word) => path.includes(word)));
  const compiled = wanted.map((path) => join(compiledFolder, '..', path.replace(/\.ts$/, '.js')));
  const missing = compiled.filter((path) => !existsSync(path));
  if (missing.length > 0)
    throw new Error(`not compiled (npm run build): ${missing.map(shownPath).join(', ')}`);
  return compiled.toSorted();
}

/** A file that could not be loaded, or that held no test, is reported by the runner as a test with the file's name. */
function isWholeFile(data: ResultData, file: string): boolean {
  return data.nesting === 0 && data.name === file;
}

function onPass(data: ResultData): void {
  const file = data.file ?? '';
  const report = reportOf(file);
  if (data.skip !== undefined && data.skip !== false) {
    report.skipped++;
    skips.push(
      `${titleOf(data)}: ${typeof data.skip === 'string' && data.skip !== '' ? data.skip : 'no reason given'}`,
    );
  } else if (isWholeFile(data, file)) {
    fail(data, 'no test ran in this file');
  } else if (data.details.type !== 'suite') {
    report.passed++;
  }
}

function onFail(data: ResultData): void {
  const error = data.details.error as Failure | undefined;
  // A suite fails because of its tests, which have been told.
  if (error?.failureType === 'subtestsFailed') return;
  const file = data.file ?? '';
  const report = reportOf(file);
  const cause = error?.cause ?? error;
  const shown = cause instanceof Error ? (cause.stack ?? cause.message) : inspect(cause);
  fail(data, isWholeFile(data, file) ? `${shown}\n${report.output}` : shown);
}

function fail(data: ResultData, shown: string): void {
  reportOf(data.file ?? '').failed++;
  const told = `✖ ${titleOf(data)}\n${indented(shown)}\n`;
  failures.push(told);
  say(told);
}

function titleOf(data: ResultData): string {
  const file = data.file ?? '';
  if (isWholeFile(data, file)) return shownPath(file);
  return [shownPath(file), ...reportOf(file).names.slice(0, data.nesting), data.name].join(' › ');
}

function indented(text: string): string {
  return text.trimEnd().replace(/^/gm, '    ');
}

function onFileEnd(file: string, durationMs: number): void {
  const { passed, failed, skipped } = reportOf(file);
  const parts = [
    `${passed} passed`,
    failed > 0 ? `${failed} failed` : '',
    skipped > 0 ? `${skipped} skipped` : '',
  ];
  const counts = parts.filter((part) => part !== '').join(', ');
  say(`${failed > 0 ? '✖' : '✔'} ${shownPath(file)} (${counts}, ${(durationMs / 1_000).toFixed(1)} s)`);
}

/** Results of a file come after it has ended; its line is printed when the next file's begin, or at the very end. */
let current: { readonly file: string; durationMs: number } | null = null;
const durations = new Map<string, number>();

function turnTo(file: string): void {
  if (current?.file === file) return;
  closeCurrent();
  current = { file, durationMs: 0 };
}

function closeCurrent(): void {
  if (current !== null) onFileEnd(current.file, durations.get(current.file) ?? 0);
  current = null;
}

async function runTests(files: string[]): Promise<void> {
  // Stacks in the words of the sources, in every test's own process.
  process.execArgv.push('--enable-source-maps');
  const events = run({ files, concurrency: filesAtOnce, timeout: fileTimeoutMs });
  for await (const event of events as AsyncIterable<{ readonly type: string; readonly data: unknown }>) {
    const data = event.data as ResultData & { readonly message: string };
    const file = data.file ?? '';
    if (event.type === 'test:stdout' || event.type === 'test:stderr') reportOf(file).output += data.message;
    if (event.type === 'test:complete' && isWholeFile(data, file))
      durations.set(file, data.details.duration_ms);
    if (event.type === 'test:start') {
      turnTo(file);
      reportOf(file).names[data.nesting] = data.name;
    }
    if (event.type === 'test:pass') onPass(data);
    if (event.type === 'test:fail') onFail(data);
    if (event.type === 'test:diagnostic' && data.file === undefined && data.nesting === 0)
      sums.push(data.message);
  }
  closeCurrent();
}

function sumOf(count: (report: FileReport) => number): number {
  return [...reports.values()].reduce((sum, report) => sum + count(report), 0);
}

function close(): number {
  if (skips.length > 0) say(`\nskipped:\n${skips.map((line) => `  ﹣ ${line}`).join('\n')}`);
  if (failures.length > 0) say(`\n✖ failing tests:\n\n${failures.join('\n')}`);
  for (const line of sums) say(`ℹ ${line}`);
  const [passed, failed, skipped] = [sumOf((r) => r.passed), sumOf((r) => r.failed), sumOf((r) => r.skipped)];
  const skipsRefused = process.env.TIDEBASE_TEST_NO_SKIP === '1' && skipped > 0;
  if (skipsRefused) say('nothing may be skipped here (TIDEBASE_TEST_NO_SKIP=1)');
  if (passed + failed === 0) say('no test ran');
  say(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed > 0 || passed === 0 || skipsRefused ? 1 : 0;
}

process.chdir(root);
await runTests(compiledTests(process.argv.slice(2)));
process.exitCode = close();
