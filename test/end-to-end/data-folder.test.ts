import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { ServerProcess, startServer, temporaryFolder, withLimits } from '../support/server-process.ts';

test('of two servers that are started on one data folder the second ends with a sentence, and the first does not notice', async () => {
  const quick = withLimits({ folderLockWaitMs: 500 });
  const folder = temporaryFolder();
  const both = [1, 2].map(() => new ServerProcess({ folder, ...quick }));

  await eventually(() => both.some(({ running }) => !running), 'one of them ends');

  const second = both.find(({ running }) => !running) ?? assert.fail();
  assert.deepEqual(await second.end(), { code: 78, signal: null }, second.errors);
  assert.match(
    second.errors,
    /tidebase cannot start: another server is running on the data folder .*TIDEBASE_DATA_DIR/,
  );
  const first = both.find((each) => each !== second) ?? assert.fail();
  await first.listening();
  const { key } = await new ApiClient(first.url).signup('ada@example.com');
  await new ApiClient(first.url, key).put('notes', [{ id: 'a', text: 'x' }]);
  assert.deepEqual(await first.stop(), { code: 0, signal: null });
});

test('one that was killed is in nobody’s way', async () => {
  const folder = temporaryFolder();
  const killed = await startServer({ folder });
  const { key } = await new ApiClient(killed.url).signup('ada@example.com');
  await killed.kill();

  const next = await startServer({ folder });

  assert.equal((await new ApiClient(next.url, key).me()).auth, 'key');
  await next.stop();
});
