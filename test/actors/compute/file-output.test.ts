import assert from 'node:assert/strict';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { FileOutput } from '../../../actors/compute/file-output.ts';
import { folderPieceBytes } from '../../../src/object-store/uploads.ts';
import { seededBytes } from '../../support/in-process.ts';
import { temporaryFolder } from '../../support/server-process.ts';

let file: FileHandle;

beforeEach(async () => {
  file = await open(join(temporaryFolder(), 'output'), 'wx+');
});
afterEach(() => file.close());

/** Chunks of all sizes about the piece that is gathered, 5 MB together. */
const chunks = [0, 1, 100, 1024 * 1024 - 101, 1, 1024 * 1024, 1024 * 1024 + 1, 7, 2_000_000, 3].map(
  (size, at) => Buffer.from(seededBytes(at).bytes(size)),
);
const all = Buffer.concat(chunks);

async function writeAll(output: FileOutput): Promise<void> {
  for (const chunk of chunks) await output.write(chunk);
}

async function copied(output: FileOutput): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  await output.copyTo(async (piece) => {
    pieces.push(piece);
    await new Promise(setImmediate);
  });
  // The folder store takes pieces of that length without a copy.
  assert.ok(pieces.slice(0, -1).every(({ length }) => length === folderPieceBytes));
  return Buffer.concat(pieces);
}

test('who reads before, while and after it is written gets all of it', async () => {
  const output = new FileOutput(file);
  const before = copied(output);
  await writeAll(output);
  const meanwhile = copied(output);
  await output.end();
  for (const bytes of [await before, await meanwhile, await copied(output)]) assert.ok(bytes.equals(all));
});

test('a writing that failed is told to every reader', async () => {
  const output = new FileOutput(file);
  const before = assert.rejects(copied(output), /no more disk/u);
  await writeAll(output);
  await output.end(new Error('no more disk'));
  await before;
  await assert.rejects(copied(output), /no more disk/u);
});

test('a reader that stops does not hold up the writing', async () => {
  const output = new FileOutput(file);
  const stopped = assert.rejects(
    output.copyTo(() => {
      throw new Error('nobody reads any more');
    }),
    /nobody reads/u,
  );
  await writeAll(output);
  await output.end();
  await stopped;
  assert.ok((await copied(output)).equals(all));
});
