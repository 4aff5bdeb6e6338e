import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { readStoreSettings } from '../../src/store-settings.ts';

test('a command finds the store in a shell that has the cluster key of servers and the port of none', () => {
  const env = {
    TIDEBASE_OBJECTS_DIR: 'data/three/objects',
    TIDEBASE_CLUSTER_KEY: Buffer.alloc(32, 1).toString('base64'),
  };

  assert.deepEqual(readStoreSettings(env), { kind: 'fs', folder: resolve('data/three/objects') });
});
