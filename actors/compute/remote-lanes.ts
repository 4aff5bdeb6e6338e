import type { MessagePort } from 'node:worker_threads';
import { apiErrorFromWire } from '../../protocol/messages.ts';
import type { ComputeLaneName, LaneClaim, LanesControl } from '../../protocol/worker-tasks.ts';
import { moved, wrapControl } from '../../src/base/control.ts';
import { sawSharedIn } from '../../src/base/garbage.ts';
import type { Embedded } from '../embedding/embed-request.ts';
import type { RowsAnswer } from '../search/find-rows-task.ts';
import type { DecodedBlocks } from '../storage/decode-blocks.ts';
import type { ParsedBody } from '../storage/parse-write.ts';
import type { MatchAnswer } from '../text/match-task.ts';
import { type ImportThreads, importByThreads } from './import-by-threads.ts';
import type {
  BuiltGraph,
  BuiltImport,
  BuiltSegment,
  ComputeLanes,
  ComputeResult,
  ComputeTask,
  ReplacedRows,
} from './lanes.ts';

/** The compute lanes as an actor thread sees them. */
export function remoteLanes(port: MessagePort): ComputeLanes {
  const control = wrapControl<LanesControl>(port);
  const run = async <T>(
    lane: ComputeLaneName,
    task: ComputeTask,
    claim: LaneClaim,
    buffers: (ArrayBuffer | MessagePort)[] = [],
  ): Promise<T> => {
    const result = (await control.run(lane, moved(task, buffers), claim, buffers)) as ComputeResult<T>;
    sawSharedIn(result);
    if (!result.ok) throw apiErrorFromWire(result.error);
    return result.value;
  };
  return {
    parse(task, claim) {
      // The body's buffer is its own: it came from the front as one.
      return run<ParsedBody>('parse', task, claim, [task.body.buffer as ArrayBuffer]);
    },
    buildSegment: (task, claim) => run<BuiltSegment>('build', task, claim),
    mergeSegments: (task, claim) => run<BuiltSegment | null>('merge', task, claim),
    buildGraphs: (task, claim) => run<BuiltGraph[]>('graph', task, claim),
    embed: (task, claim) => run<Embedded>(task.task === 'embed-here' ? 'model' : 'embed', task, claim),
    importFile(task, claim) {
      // What was begun is not too late when it has to be done once more.
      const claimOf = ({ looksAtAll }: { readonly looksAtAll: boolean }) =>
        looksAtAll ? { ...claim, deadlineAt: null } : claim;
      const threads: ImportThreads = {
        read: (reading, ports) => run<void>('import', reading, claimOf(reading), [...ports]),
        help: (reading, ports) => run<void>('importHelp', reading, claim, [...ports]),
        build: (building, ports) =>
          run<BuiltImport | null>('importBuild', building, claimOf(building), [...ports]),
      };
      return importByThreads(threads, task);
    },
    replacedRows: (task, claim) => run<ReplacedRows>('build', task, claim),
    match: (task, claim) => run<MatchAnswer>('match', task, claim, [task.text.buffer as ArrayBuffer]),
    findRows: (task, claim) => run<RowsAnswer>('scan', task, claim),
    decodeBlocks: (task, claim) =>
      run<DecodedBlocks>('scan', task, claim, [task.stored.buffer as ArrayBuffer]),
  };
}
