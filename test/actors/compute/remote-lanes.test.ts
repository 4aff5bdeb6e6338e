import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import type { ComputeTask, ImportFileTask, ReadImportTask } from '../../../actors/compute/lanes.ts';
import { remoteLanes } from '../../../actors/compute/remote-lanes.ts';
import { importRequest } from '../../../actors/import/import-request.ts';
import type { ComputeLaneName, LaneClaim } from '../../../protocol/worker-tasks.ts';
import { exposeControl } from '../../../src/base/control.ts';

test('an import that has to be done once more is not too late for it: its second reading and building have no deadline', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.after(() => port1.close());
  const asked: (readonly [ComputeLaneName, number | null])[] = [];
  let buildings = 0;
  const front = {
    run(lane: ComputeLaneName, task: ComputeTask, { deadlineAt }: LaneClaim) {
      asked.push([lane, deadlineAt]);
      if (lane === 'import') (task as ReadImportTask).begun?.postMessage('begun');
      // The first building says that kinds must be inferred from all rows.
      const value = lane === 'importBuild' && ++buildings === 2 ? { rowCount: 7 } : null;
      return { ok: true, value };
    },
  };
  exposeControl(front, port1);
  const task: ImportFileTask = {
    ...importRequest('format=csv'),
    path: '/nowhere',
    bytes: 0,
    dims: null,
    key: 'ns/ab/n/segment/imported',
    firstSequence: 1,
    writtenAt: 1,
  };
  const claim: LaneClaim = { share: { owner: 1, tenant: 1, weight: 1 }, deadlineAt: 5_000 };

  const built = await remoteLanes(port2).importFile(task, claim);

  assert.equal(built.rowCount, 7);
  assert.deepEqual(asked, [
    ['import', 5_000],
    ['importBuild', 5_000],
    ['import', null],
    ['importBuild', null],
  ]);
});
