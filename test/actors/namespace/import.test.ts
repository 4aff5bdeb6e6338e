import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { eventually } from '../../support/eventually.ts';
import { endImporting, importInto, sqlRows, startImporting } from '../../support/imports.ts';
import type { InProcess } from '../../support/in-process.ts';

after(endImporting);

const csv = (rows: readonly (readonly [string, string])[]) =>
  `id,text\n${rows.map(([id, text]) => `${id},${text}`).join('\n')}\n`;
const query = { id: 'id', text: 'text' };

async function started(store = new MemoryObjectStore(systemClock)): Promise<InProcess> {
  const server = await startImporting(store);
  await server.createTenant();
  return server;
}

const textOf = async (server: InProcess, id: string) => {
  const { status, body } = await server.get('n', id);
  return status === 200 ? body.text : status;
};

test('an import replaces what was written before, wherever it lies, and is replaced by what comes after', async () => {
  const server = await started();
  await importInto(
    server,
    'n',
    csv([
      ['a', 'segment a'],
      ['b', 'segment b'],
      ['c', 'segment c'],
      ['d', 'segment d'],
    ]),
    query,
  );
  await server.put(
    'n',
    [
      { id: 'b', text: 'memory b' },
      { id: 'e', text: 'memory e' },
    ],
    ['d'],
  );
  const { status, body } = await importInto(
    server,
    'n',
    csv([
      ['a', 'import a'],
      ['b', 'import b'],
      ['f', 'import f'],
      ['f', 'import f2'],
    ]),
    query,
  );
  assert.deepEqual([status, body.created, body.rows], [200, false, 4], JSON.stringify(body));
  await server.put('n', [{ id: 'f', text: 'later f' }], ['c']);
  const found = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((id) => textOf(server, id)));
  assert.deepEqual(found, ['import a', 'import b', 404, 404, 'memory e', 'later f']);
  assert.equal((await server.count('n')).body.count, 4);
  assert.deepEqual(await server.list('n'), ['f', 'b', 'a', 'e'], 'newest first');
  assert.deepEqual(await server.list('n', 1), ['f', 'b', 'a', 'e'], 'page by page');
  assert.deepEqual(await sqlRows(server, 'n', 'SELECT COUNT(*) FROM docs'), [[4]]);
  await server.drain();
});

test('an import that was answered is there after a kill, and so is what was written after it', async () => {
  const store = new MemoryObjectStore(systemClock);
  const first = await started(store);
  await first.put('n', [
    { id: 'a', text: 'before' },
    { id: 'z', text: 'old' },
  ]);
  const { body } = await importInto(
    first,
    'n',
    csv([
      ['a', 'import'],
      ['b', 'import'],
    ]),
    query,
  );
  await first.put('n', [{ id: 'b', text: 'after' }]);
  first.kill();
  const second = await startImporting(store);
  assert.deepEqual(await Promise.all(['a', 'b', 'z'].map((id) => textOf(second, id))), [
    'import',
    'after',
    'old',
  ]);
  const { body: written } = await second.put('n', [{ id: 'c', text: 'next' }]);
  assert.equal(written.version, body.version + 2);
  await second.drain();
});

test('an import whose record is durable is there after a kill, though its manifest was never committed', async () => {
  const store = new MemoryObjectStore(systemClock);
  const first = await started(store);
  await first.put('n', [
    { id: 'a', text: 'before' },
    { id: 'b', text: 'stays' },
  ]);
  // The first manifest is that of the flush before it.
  let manifests = 0;
  first.store.plan = ({ operation, key }) => {
    if (operation === 'get' || !key.endsWith('/manifest') || !key.startsWith('ns/')) return undefined;
    manifests++;
    return manifests === 1 ? undefined : 'drop-before-apply';
  };
  void importInto(
    first,
    'n',
    csv([
      ['a', 'import'],
      ['a', 'twice'],
      ['c', 'import'],
    ]),
    query,
  ).catch(() => null);
  await eventually(() => manifests > 1, 'its manifest was tried');
  first.kill();
  const second = await startImporting(store);
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((id) => textOf(second, id))), [
    'twice',
    'stays',
    'import',
  ]);
  assert.equal((await second.count('n')).body.count, 3);
  await second.drain();
  // And once more from the manifest alone: it was applied once.
  const third = await startImporting(store);
  assert.equal((await third.count('n')).body.count, 3);
  await third.drain();
});

test('imports and writes of one namespace at once: each row is that of whoever came last', async () => {
  const server = await started();
  const work: Promise<unknown>[] = [];
  for (let round = 0; round < 4; round++) {
    work.push(
      importInto(
        server,
        'n',
        csv([
          ['a', `import ${round}`],
          [`i${round}`, 'import'],
        ]),
        query,
      ),
    );
    for (let write = 0; write < 5; write++)
      work.push(server.put('n', [{ id: `w${round}-${write}`, text: 'put' }]));
  }
  const answers = (await Promise.all(work)) as { status: number; body: { version: number } }[];
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  const versions = answers.map(({ body }) => body.version).sort((a, b) => a - b);
  assert.deepEqual(
    versions,
    Array.from({ length: 24 }, (_, at) => at + 1),
    'each has a version of its own',
  );
  assert.equal((await server.count('n')).body.count, 1 + 4 + 20);
  await server.drain();
});

test('a name that is deleted while its file is read is made again', async () => {
  const server = await started();
  await server.put('n', [{ id: 'old', text: 'old' }]);
  const importing = importInto(
    server,
    'n',
    csv(Array.from({ length: 30_000 }, (_, row) => [`r${row}`, 'x'] as const)),
    query,
  );
  await systemClock.sleep(20);
  await server.ask('deleteNamespace', '', { argument: 'n' });
  const { status } = await importing;
  assert.equal(status, 200);
  const count = (await server.count('n')).body.count;
  // The import may have been there before the name was deleted.
  assert.ok(count === 30_000 || count === undefined, String(count));
  await server.drain();
});
