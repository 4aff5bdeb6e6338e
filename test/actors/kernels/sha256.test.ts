import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  shaBlockBytes,
  shaLanes,
  shaMessageBytesMax,
  threadShaLanes,
  writeBlock,
} from '../../../actors/kernels/sha256.ts';
import { digestId, idDigestWords } from '../../../actors/storage/id-digest.ts';
import { IdDigests } from '../../../actors/storage/id-digests.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));

test('four messages have the digests that the platform gives them, of all lengths and bytes', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  // What one message leaves behind is nothing to the next.
  const blocks = new Uint8Array(shaLanes * shaBlockBytes).fill(0xff);
  for (let length = 0; length <= shaMessageBytesMax; length++) {
    const messages = Array.from({ length: shaLanes }, (_, lane) =>
      Uint8Array.from({ length: (length + lane * 17) % (shaMessageBytesMax + 1) }, () => random() * 256),
    );
    for (const [lane, message] of messages.entries()) writeBlock(blocks, lane * shaBlockBytes, message);

    const words = [...threadShaLanes().digest(blocks)];

    const wanted = messages.flatMap((message) => {
      const digest = createHash('sha256').update(message).digest();
      return [0, 4, 8, 12].map((at) => digest.readUInt32BE(at));
    });
    assert.deepEqual(words, wanted, `messages of ${messages.map((message) => message.length)} bytes`);
  }
});

test('ids of all lengths have one digest, whether they come in a row or are looked up', () => {
  const random = seededRandom(seed);
  for (const count of [0, 1, 3, 4, 5, 2_500]) {
    const ids = Array.from({ length: count }, () =>
      Buffer.alloc(1 + Math.floor(random() * 90), `é${random()}`),
    );
    const [some, others] = [new IdDigests({}), new IdDigests({ rowsExpected: count })];
    // Two segments may be made in turns.
    for (const id of ids) {
      some.add(id);
      others.add(id);
    }
    const wanted = new Uint32Array(count * idDigestWords);
    for (const [row, id] of ids.entries()) digestId(id, wanted, row * idDigestWords);
    assert.deepEqual(some.all().subarray(0, wanted.length), wanted);
    assert.deepEqual(others.all().subarray(0, wanted.length), wanted);
  }
});
