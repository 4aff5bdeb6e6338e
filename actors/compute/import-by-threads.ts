import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { limits } from '../../protocol/limits.ts';
import { assert } from '../../src/base/assert.ts';
import { FileRanges } from '../import/file-ranges.ts';
import type { BuildImportTask, BuiltImport, ImportFileTask, ReadImportTask } from './lanes.ts';

/** Where the tasks of an import run; ports of a task are moved. */
export interface ImportThreads {
  /** Reads the file; begins when it is the import's turn. */
  read(task: ReadImportTask, moved: readonly MessagePort[]): Promise<void>;
  /** Reads ranges of the file beside the first reader; may begin late, or not at all. */
  help(task: ReadImportTask, moved: readonly MessagePort[]): Promise<void>;
  /** Makes the segment; answers null where kinds of columns have to be inferred from all rows. */
  build(task: BuildImportTask, moved: readonly MessagePort[]): Promise<BuiltImport | null>;
}

/**
 * Runs an import: one thread reads the file, another one helps where there is much to read and a thread is idle, and a third makes the segment. Where a
 * value is not of the kind that the first rows have in its column, all of it is done once more.
 */
export async function importByThreads(threads: ImportThreads, file: ImportFileTask): Promise<BuiltImport> {
  const built =
    (await readAndBuild(threads, file, { looksAtAll: false })) ??
    (await readAndBuild(threads, file, { looksAtAll: true }));
  assert(built !== null, () => 'kinds that were inferred from all rows are those of all rows');
  return built;
}

async function readAndBuild(
  threads: ImportThreads,
  { key, bytes, ...file }: ImportFileTask,
  { looksAtAll }: { readonly looksAtAll: boolean },
): Promise<BuiltImport | null> {
  const [parts, begun, helped] = [new MessageChannel(), new MessageChannel(), new MessageChannel()];
  const task = { task: 'read-import', ...file, looksAtAll, ranges: new FileRanges().shared } as const;
  try {
    const hasBegun = once(begun.port1, 'message');
    const reading = threads.read({ ...task, parts: parts.port1, begun: begun.port2 }, [
      parts.port1,
      begun.port2,
    ]);
    // A reading that never begins ends both.
    await Promise.race([hasBegun, reading]);
    const ports: [MessagePort, ...MessagePort[]] = [parts.port2];
    // Vectors are as long as the first of the file, which one reader knows; and each would look at all values.
    if (bytes >= limits.importHelpedBytesMin && file.vector === null && !looksAtAll) {
      ports.push(helped.port2);
      // Who helps may have ended before who builds begins, and a port whose other end is closed can't be moved.
      once(helped.port1, 'message')
        .then(() => threads.help({ ...task, parts: helped.port1, begun: null }, [helped.port1]))
        // What it can't do is told to who builds, and what it doesn't is done by the first reader.
        .catch(() => {});
    }
    const building = {
      task: 'build-import',
      key,
      firstSequence: file.firstSequence,
      looksAtAll,
      parts: ports,
    } as const;
    const [built] = await Promise.all([threads.build(building, ports), reading]);
    return built;
  } finally {
    // A port that was moved belongs to another thread, and nothing becomes of it here. Where nobody builds, whoever reads hears that the other end is closed.
    for (const { port1, port2 } of [parts, begun, helped]) {
      port1.close();
      port2.close();
    }
  }
}
