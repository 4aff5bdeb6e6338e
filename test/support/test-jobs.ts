/** Which test files run in which process, in which order, and beside which others. */
import { type FileCost, readCosts } from './test-costs.ts';

export interface TestFile {
  /** Its path from the root, in the sources. */
  readonly path: string;
  readonly compiled: string;
}

/** Files that run one after another in one process. */
export interface TestJob {
  /** The file's own path, or the folder of those that share the process. */
  readonly title: string;
  readonly files: readonly TestFile[];
  /** How long it takes on a quiet machine, and how much of that a core computes. */
  readonly cost: FileCost;
}

/** Starting Node and loading the product costs half a second of a core: unit tests share it. */
const sharedFolders = ['test/actors/', 'test/src/', 'test/protocol/'];

/** Files of those folders that change what is the whole process's, or judge it. */
const ownProcess: ReadonlyMap<string, string> = new Map([
  ['test/actors/embedding/provider-client.test.ts', 'changes the environment'],
  ['test/actors/import/parquet.test.ts', 'measures the memory of the process'],
  ['test/actors/namespace/patch.test.ts', 'measures the memory of the process'],
  ['test/actors/text/replace-matches.test.ts', 'measures the memory of the process'],
  ['test/actors/text/trigram-index.test.ts', 'measures the memory of the process'],
  ['test/src/base/thread-priority.test.ts', 'looks at every thread of the process'],
]);

const fileCosts = readCosts();
/** A file that is not in the table: it computes all the time. */
const unknownCost: FileCost = { seconds: 2, coreSeconds: 2 };

/** More files in one process would make the run wait for the last of them. */
const filesPerProcessMax = 24;

/** The folder whose files share a process with this one, or null for a process of its own. */
function sharedFolder(path: string): string | null {
  if (ownProcess.has(path)) return null;
  if (!sharedFolders.some((folder) => path.startsWith(folder))) return null;
  return path.split('/').slice(0, 3).join('/');
}

function costOf(files: readonly TestFile[]): FileCost {
  const costs = files.map(({ path }) => fileCosts.get(path) ?? unknownCost);
  return {
    seconds: costs.reduce((sum, { seconds }) => sum + seconds, 0),
    coreSeconds: costs.reduce((sum, { coreSeconds }) => sum + coreSeconds, 0),
  };
}

/**
 * One job for each file that needs a process of its own, one for each few of a folder. The longest begin first, so that
 * no core waits at the end for the last of them.
 */
export function testJobs(files: readonly TestFile[]): TestJob[] {
  const jobs: { title: string; files: TestFile[] }[] = [];
  for (const file of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const folder = sharedFolder(file.path);
    const open = jobs.findLast((job) => job.title === folder && job.files.length < filesPerProcessMax);
    if (open !== undefined) open.files.push(file);
    else jobs.push({ title: folder ?? file.path, files: [file] });
  }
  return jobs
    .map((job) => ({ ...job, cost: costOf(job.files) }))
    .toSorted((a, b) => b.cost.seconds - a.cost.seconds);
}

/** Each has a server, a browser or another program of its own. */
const jobsPerCoreMax = 3;
/** Cores may be promised a little more than they have: what a job takes is not spread evenly. */
const promised = 1.1;

/** The share of a core that a job takes, on average. */
const shareOf = ({ cost }: Pick<TestJob, 'cost'>) => cost.coreSeconds / cost.seconds;

/**
 * The job to begin beside those that run, or undefined where none has room: jobs that mostly wait run beside others as
 * long as all of them together compute no more than the cores can.
 */
export function nextJob(
  waiting: readonly TestJob[],
  running: readonly TestJob[],
  cores: number,
): TestJob | undefined {
  if (running.length === 0) return waiting[0];
  if (running.length >= cores * jobsPerCoreMax) return undefined;
  const room = cores * promised - running.reduce((sum, job) => sum + shareOf(job), 0);
  return waiting.find((job) => shareOf(job) <= room);
}

/** Files named here and no longer there would be a rule about nothing. */
export function namedTestFiles(): string[] {
  return [...ownProcess.keys(), ...fileCosts.keys()];
}

/** How long something may keep a process alive when all of its files are through. */
const lingeringMsMax = 5_000;

/**
 * The module that a process of test files begins with. Each file is a suite with a time limit of its own, loaded when the
 * one before has ended.
 */
export function entryOf(
  job: Pick<TestJob, 'files'>,
  fileTimeoutMs: number,
  lingeringMs = lingeringMsMax,
): string {
  const files = JSON.stringify(job.files.map(({ path, compiled }) => [path, compiled]));
  const runner = JSON.stringify(new URL('./shared-process.js', import.meta.url).href);
  return `import { runShared } from ${runner};\nawait runShared(${files}, ${fileTimeoutMs}, ${lingeringMs});\n`;
}
