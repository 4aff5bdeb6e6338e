import type { MessagePort } from 'node:worker_threads';
import { apiErrorFromWire } from '../../protocol/messages.ts';
import type { ComputeLaneName, LanesControl } from '../../protocol/worker-tasks.ts';
import { moved, wrapControl } from '../../src/base/control.ts';
import type { Embedded } from '../embedding/embed-request.ts';
import type { Found } from '../text/judge.ts';
import type { BuiltGraph, BuiltSegment, ComputeLanes, ComputeResult, ComputeTask } from './lanes.ts';

/** The compute lanes as an actor thread sees them. */
export function remoteLanes(port: MessagePort): ComputeLanes {
  const control = wrapControl<LanesControl>(port);
  const run = async <T>(
    lane: ComputeLaneName,
    task: ComputeTask,
    buffers: ArrayBuffer[] = [],
  ): Promise<T> => {
    const result = (await control.run(lane, moved(task, buffers), buffers)) as ComputeResult<T>;
    if (!result.ok) throw apiErrorFromWire(result.error);
    return result.value;
  };
  return {
    parse(task) {
      // The body's buffer is its own: it came from the front as one.
      return run<Uint8Array>('parse', task, [task.body.buffer as ArrayBuffer]);
    },
    buildSegment: (task) => run<BuiltSegment>('build', task),
    mergeSegments: (task) => run<BuiltSegment | null>('merge', task),
    buildGraphs: (task) => run<BuiltGraph[]>('graph', task),
    embed: (task) => run<Embedded>(task.task === 'embed-here' ? 'model' : 'embed', task),
    match: (task) => run<Found>('match', task, [task.text.buffer as ArrayBuffer]),
  };
}
