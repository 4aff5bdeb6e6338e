/** Processor time of processes and threads, and their memory, from the kernel. */
import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second on every machine that Node runs on. */
const ticksPerSecond = 100;

/** Seconds that a process, all its threads and the living processes that it started have used. */
export function treeCpuSeconds(processId: number): number {
  return treeOf(processId).reduce((ticks, id) => ticks + ticksOf(`/proc/${id}/stat`), 0) / ticksPerSecond;
}

/** Resident bytes of a process and of the living ones that it started; pages that they share count for each of them. */
export function treeResidentBytes(processId: number): number {
  const kilobytes = (id: number) =>
    Number(/^VmRSS:\s*(\d+) kB$/m.exec(textOf(`/proc/${id}/status`))?.[1] ?? 0);
  return treeOf(processId).reduce((bytes, id) => bytes + kilobytes(id) * 1024, 0);
}

function treeOf(processId: number): number[] {
  const children = childrenByParent();
  const tree: number[] = [];
  const waiting = [processId];
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    tree.push(id);
    waiting.push(...(children.get(id) ?? []));
  }
  return tree;
}

export interface ThreadCpu {
  readonly threadId: string;
  readonly name: string;
  /** How long it ran code of its process. */
  readonly userSeconds: number;
  /** How long the kernel worked for it. */
  readonly systemSeconds: number;
  /** User and system time together. */
  readonly seconds: number;
}

/** The threads of one process. Node names few of them: the order of their ids is that of their start. */
export function threadCpu(processId: number): ThreadCpu[] {
  const folder = `/proc/${processId}/task`;
  return readdirSync(folder).map((threadId) => {
    const { user, system } = timesOf(`${folder}/${threadId}/stat`);
    return {
      threadId,
      name: textOf(`${folder}/${threadId}/comm`).trim(),
      userSeconds: user / ticksPerSecond,
      systemSeconds: system / ticksPerSecond,
      seconds: (user + system) / ticksPerSecond,
    };
  });
}

function ticksOf(file: string): number {
  const { user, system } = timesOf(file);
  return user + system;
}

/** User and system time in ticks; 0 for one that has ended meanwhile. */
function timesOf(file: string): { readonly user: number; readonly system: number } {
  const [, , , , , , , , , , , user = '0', system = '0'] = fieldsOf(file);
  return { user: Number(user), system: Number(system) };
}

function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(fieldsOf(`/proc/${name}/stat`)[1] ?? 0);
    const known = children.get(parent);
    if (known === undefined) children.set(parent, [Number(name)]);
    else known.push(Number(name));
  }
  return children;
}

/** What follows the name, which is in brackets and may hold anything: the state first. */
function fieldsOf(file: string): string[] {
  const text = textOf(file);
  return text === '' ? [] : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Empty for a process or thread that has ended meanwhile. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
