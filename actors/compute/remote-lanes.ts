import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { apiErrorFromWire } from '../../protocol/messages.ts';
import type { ComputeLaneName, LaneClaim, LanesControl } from '../../protocol/worker-tasks.ts';
import { moved, wrapControl } from '../../src/base/control.ts';
import { sawSharedIn } from '../../src/base/garbage.ts';
import type { Embedded } from '../embedding/embed-request.ts';
import type { RowsAnswer } from '../search/find-rows-task.ts';
import type { ParsedBody } from '../storage/parse-write.ts';
import type { MatchAnswer } from '../text/match-task.ts';
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
    async importFile({ key, firstSequence, writtenAt, ...file }, claim) {
      const parts = new MessageChannel();
      const begun = new MessageChannel();
      const hasBegun = once(begun.port1, 'message');
      const reading = run<void>(
        'import',
        { task: 'read-import', ...file, parts: parts.port1, begun: begun.port2 },
        claim,
        [parts.port1, begun.port2],
      );
      // A reading that never begins ends both.
      await Promise.race([hasBegun, reading]);
      const building = { task: 'build-import', key, firstSequence, writtenAt, parts: parts.port2 } as const;
      const [built] = await Promise.all([
        run<BuiltImport>('importBuild', building, claim, [parts.port2]),
        reading,
      ]);
      return built;
    },
    replacedRows: (task, claim) => run<ReplacedRows>('build', task, claim),
    match: (task, claim) => run<MatchAnswer>('match', task, claim, [task.text.buffer as ArrayBuffer]),
    findRows: (task, claim) => run<RowsAnswer>('scan', task, claim),
  };
}
