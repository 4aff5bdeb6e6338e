import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SealedLogs } from '../../../actors/log/sealed-logs.ts';
import { UnflushedTargets } from '../../../actors/log/unflushed.ts';

const log = { logId: 'a', sealSeq: 151 };
const target = { tenantId: 1, namespace: 'notes', namespaceId: 'n1' };

test('a reading that ends at a barrier is not the one that says which targets a log has, though it was sealed meanwhile', () => {
  const sealed = new SealedLogs();
  sealed.adopt([log]);

  assert.deepEqual(
    [100, 149, 150].map((through) => sealed.isFirstReading('a', through)),
    [false, false, true],
  );
  assert.equal(sealed.unflushedOf('a'), undefined, 'so whoever wants something reads it from its floor on');

  sealed.read('a', new UnflushedTargets());
  assert.equal(sealed.isFirstReading('a', 150), false);
  assert.deepEqual(sealed.finished, ['a']);
});

test('nothing is kept of logs that the view forgets, read or not', () => {
  const sealed = new SealedLogs();
  sealed.adopt([log, { ...log, logId: 'b' }]);
  const unflushed = new UnflushedTargets();
  unflushed.appended(target, { slot: 1, index: 0, atMs: 0 });
  sealed.read('a', unflushed);
  assert.deepEqual(
    sealed.silent(() => true).map(({ logId }) => logId),
    ['a'],
  );

  sealed.adopt([]);
  assert.deepEqual([sealed.logs, sealed.unread, sealed.silent(() => true)], [[], [], []]);
  // One of that name would be another view's: what was said of it before does not count.
  sealed.begin([log], true);
  sealed.read('a', unflushed);
  assert.deepEqual(
    sealed.silent(() => true),
    [],
  );
});
