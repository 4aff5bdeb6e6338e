import { readdirSync, readlinkSync } from 'node:fs';

/** What a process has open, by kind, from the kernel. */
export interface OpenFiles {
  readonly sockets: number;
  readonly pipes: number;
  /** Event loops, timers and the like. */
  readonly kernel: number;
  readonly files: number;
  /** Files whose name is gone: nobody will close them by deleting them. */
  readonly deleted: number;
}

export function openFilesOf(processId: number): OpenFiles {
  const folder = `/proc/${processId}/fd`;
  return countOpenFiles(readdirSync(folder).flatMap((name) => targetOf(`${folder}/${name}`)));
}

/** Counts targets as the kernel names them: `socket:[4711]`, `anon_inode:[eventpoll]`, `/a/file (deleted)`. */
export function countOpenFiles(targets: readonly string[]): OpenFiles {
  const count = (is: (target: string) => boolean) => targets.filter(is).length;
  return {
    sockets: count((target) => target.startsWith('socket:')),
    pipes: count((target) => target.startsWith('pipe:')),
    kernel: count((target) => target.startsWith('anon_inode:')),
    files: count((target) => target.startsWith('/') && !target.endsWith(' (deleted)')),
    deleted: count((target) => target.startsWith('/') && target.endsWith(' (deleted)')),
  };
}

/** What there is more of than before, in words; files by their name may be others and more. */
export function openedSince(before: OpenFiles, after: OpenFiles): string[] {
  const kinds = ['sockets', 'pipes', 'kernel', 'deleted'] as const;
  return kinds
    .filter((kind) => after[kind] > before[kind])
    .map((kind) => `${after[kind]} ${kind}, ${before[kind]} before`);
}

/** Empty for one that was closed meanwhile. */
function targetOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}
