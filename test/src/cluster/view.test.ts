import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DataError } from '../../../src/base/assert.ts';
import { encodeRecord } from '../../../src/base/record.ts';
import { type ClusterView, decodeView, encodeView } from '../../../src/cluster/view.ts';
import { goldenBytes } from '../../support/golden.ts';

const member = { serverId: 'server-1', address: '127.0.0.1:8080', protocol: { least: 1, greatest: 1 } };
const view: ClusterView = {
  version: 7,
  placement: 5,
  nonce: 'f'.repeat(32),
  members: [
    { ...member, logId: 'log-1', state: 'active' },
    { ...member, logId: 'log-2', serverId: 'server-2', state: 'joining' },
    { ...member, logId: 'log-3', serverId: 'server-3', state: 'leaving' },
  ],
  removed: [{ logId: 'log-0', sealSeq: 12 }],
};

test('the bytes of a view are those of the golden file', () => {
  const made = encodeView(view);

  const golden = goldenBytes('cluster-view-v2.bin', made);

  assert.deepEqual(Buffer.from(made), golden);
  assert.deepEqual(decodeView(golden), view);
});

test('a view of version 1 is read: its changes were all changes of the owners', () => {
  const written = readFileSync(join(process.cwd(), 'test/golden/cluster-view-v1.bin'));

  const read = decodeView(written);

  assert.deepEqual([read.version, read.placement, read.removed.length], [2, 2, 1]);
  assert.deepEqual(
    read.members.map(({ serverId, state, protocol }) => ({ serverId, state, protocol })),
    [{ serverId: 'a', state: 'active', protocol: { least: 1, greatest: 1 } }],
  );
});

test('a view of another shape is damage, and names what is wrong', () => {
  const wrong = { ...view, members: [{ ...member, logId: 'log-1', state: 'gone' }] };
  const made = encodeRecord({ magic: 'TBVW', versions: [2] }, wrong);

  assert.throws(
    () => decodeView(made),
    (error) => error instanceof DataError && /members.0.state/.test(error.message),
  );
});
