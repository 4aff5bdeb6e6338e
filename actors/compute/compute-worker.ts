/** Entry of the compute lanes' threads: one short task a call. A lane has tasks of one kind, and loads what that kind needs. */
import { workerData } from 'node:worker_threads';
import { ApiError } from '../../protocol/errors.ts';
import { apiErrorToWire } from '../../protocol/messages.ts';
import type { ComputeThreadData } from '../../protocol/worker-tasks.ts';
import { unreachable } from '../../src/base/assert.ts';
import { systemClock } from '../../src/base/clock.ts';
import {
  boundGarbage,
  collectBetweenTasks,
  sawShared,
  sawSharedBriefly,
  sawSharedIn,
  toShared,
} from '../../src/base/garbage.ts';
import { systemRandom } from '../../src/base/random.ts';
import { standStillWhenAsked } from '../../src/base/stand-still.ts';
import { lowerThreadPriority } from '../../src/base/thread-priority.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { openObjectStore } from '../../src/object-store/open-object-store.ts';
import type { Embedded } from '../embedding/embed-request.ts';
import type { SentenceModel } from '../embedding/sentence-model.ts';
import type { RowFinding } from '../search/find-rows-task.ts';
import type { MatchRunner } from '../text/match-task.ts';
import { type LaneAnswer, withCpuTime } from './lane-answer.ts';
import type { ComputeResult, ComputeTask } from './lanes.ts';

standStillWhenAsked();
const {
  store: storeSettings,
  backgroundSteps,
  processMemoryBytes,
  scratchFolder,
  embeddingBaseUrls,
  ending,
} = workerData as ComputeThreadData;
boundGarbage(processMemoryBytes);
if (backgroundSteps > 0) lowerThreadPriority(backgroundSteps);
let opening: Promise<ObjectStore> | null = null;
let model: Promise<SentenceModel> | null = null;
let matches: MatchRunner | null = null;
let finding: RowFinding | null = null;

function objectStore(): Promise<ObjectStore> {
  opening ??= openObjectStore(storeSettings, systemClock, systemRandom);
  return opening;
}

export default async function compute(task: ComputeTask): Promise<LaneAnswer<ComputeResult<unknown>>> {
  sawSharedIn(task, task.task === 'find-rows' ? sawSharedBriefly : sawShared);
  const result = await resultOf(task);
  collectBetweenTasks();
  return withCpuTime(result);
}

async function resultOf(task: ComputeTask): Promise<ComputeResult<unknown>> {
  try {
    return { ok: true, value: await run(task) };
  } catch (error) {
    // An error's class does not survive the way back; one that the caller sees is sent as its parts.
    if (error instanceof ApiError) return { ok: false, error: apiErrorToWire(error) };
    throw error;
  }
}

async function run(task: ComputeTask): Promise<unknown> {
  switch (task.task) {
    case 'parse': {
      const { parseWriteBody } = await import('../storage/parse-write.ts');
      return parseWriteBody(task.kind, task.body);
    }
    case 'build-segment': {
      const { buildSegment } = await import('./build-segment.ts');
      return buildSegment({ store: await objectStore(), clock: systemClock }, task);
    }
    case 'merge-segments': {
      const { mergeSegments } = await import('./merge-segments.ts');
      return mergeSegments({ store: await objectStore(), clock: systemClock }, task);
    }
    case 'build-graphs': {
      const { buildGraphs } = await import('./build-graphs.ts');
      const isEnding = () => Atomics.load(ending, 0) !== 0;
      return buildGraphs({ store: await objectStore(), clock: systemClock, scratchFolder, isEnding }, task);
    }
    case 'embed-by-provider': {
      const deadlineMs = task.deadlineAt - systemClock.now();
      if (deadlineMs <= 0)
        throw new ApiError(
          'embedding_failed',
          'too many texts waited to be embedded before these: try again',
        );
      const { embedByProvider } = await import('../embedding/provider-client.ts');
      const components = { baseUrls: embeddingBaseUrls, clock: systemClock, random: systemRandom, fetch };
      return inSharedMemory(await embedByProvider({ ...task.request, deadlineMs }, components));
    }
    case 'embed-here': {
      const { openSentenceModel } = await import('../embedding/sentence-model.ts');
      model ??= openSentenceModel();
      const embedded = await (await model).embed(task.texts);
      return inSharedMemory({ ...embedded, dims: embedded.vectors.length / task.texts.length });
    }
    case 'read-import': {
      const { readImport } = await import('./read-import.ts');
      return readImport(task);
    }
    case 'build-import': {
      const { buildImport } = await import('./build-import.ts');
      return buildImport({ store: await objectStore(), clock: systemClock, scratchFolder }, task);
    }
    case 'replaced-rows': {
      const { replacedRows } = await import('./replaced-rows.ts');
      return replacedRows({ store: await objectStore() }, task);
    }
    case 'match': {
      const { MatchRunner } = await import('../text/match-task.ts');
      matches ??= new MatchRunner();
      return matches.run(task);
    }
    case 'find-rows': {
      const { RowFinding } = await import('../search/find-rows-task.ts');
      finding ??= new RowFinding();
      return finding.run(task);
    }
    case 'decode-blocks': {
      const { decodeBlocks } = await import('../storage/decode-blocks.ts');
      return decodeBlocks(task);
    }
    case 'prepare': {
      if (task.next === 'read-import') await import('./read-import.ts');
      else await Promise.all([import('./build-import.ts'), objectStore()]);
      return null;
    }
    default:
      return unreachable(task);
  }
}

/** 60 MB of vectors are not copied from thread to thread. */
function inSharedMemory(embedded: Embedded): Embedded {
  const { buffer, byteOffset, byteLength, length } = embedded.vectors;
  const shared = toShared(new Uint8Array(buffer, byteOffset, byteLength));
  return { ...embedded, vectors: new Float32Array(shared.buffer, shared.byteOffset, length) };
}
