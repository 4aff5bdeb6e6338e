/**
 * A folder's files as documents, in the order of their names, each folder where its name stands. What cannot be a
 * document is told as well, so that nothing disappears in silence. Links are not followed: a link may lead out of the
 * folder or round in a circle, and what it leads to inside is met anyway.
 */
import { isUtf8 } from 'node:buffer';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { documentIdProblem } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { describeError } from '../base/log.ts';

export interface FolderDocument {
  readonly kind: 'document';
  /** The path from the folder, with slashes. */
  readonly id: string;
  readonly text: string;
  readonly meta: FileMeta;
}

export interface FileMeta {
  /** In lower case and without its dot; empty where there is none. */
  readonly extension: string;
  /** Bytes. */
  readonly size: number;
  /** Whole seconds since 1970. */
  readonly mtime: number;
}

/** `special`: links, sockets, devices. `id`: a name that no document may have. */
export type LeftOutReason = 'large' | 'not-utf8' | 'id' | 'special' | 'unreadable';

export interface LeftOut {
  readonly kind: 'left-out';
  readonly path: string;
  readonly reason: LeftOutReason;
  /** What is wrong, for a person. */
  readonly problem: string;
}

/** Files read ahead of the one that is asked for: small files cost mostly the waiting, and each may hold 2 MB. */
const filesReadAheadMax = 8;

/** `folder` itself may be a link. Rejects only where it cannot be listed. */
export async function* folderDocuments(folder: string): AsyncGenerator<FolderDocument | LeftOut> {
  const ahead: Promise<FolderDocument | LeftOut>[] = [];
  for await (const found of walk(folder, '')) {
    ahead.push(found.kind === 'file' ? readDocument(folder, found.path) : Promise.resolve(found));
    if (ahead.length < filesReadAheadMax) continue;
    const next = await ahead.shift();
    if (next !== undefined) yield next;
  }
  for (const rest of ahead) yield await rest;
}

type Found = { readonly kind: 'file'; readonly path: string } | LeftOut;

async function* walk(root: string, folder: string): AsyncGenerator<Found> {
  const entries = await readdir(join(root, folder), { withFileTypes: true });
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* walkBelow(root, path);
    else if (entry.isFile()) yield { kind: 'file', path };
    else yield leftOut(path, 'special', 'is a link or no regular file');
  }
}

async function* walkBelow(root: string, folder: string): AsyncGenerator<Found> {
  try {
    yield* walk(root, folder);
  } catch (error) {
    yield leftOut(folder, 'unreadable', `cannot be listed: ${describeError(error)}`);
  }
}

/** Never rejects. */
async function readDocument(root: string, path: string): Promise<FolderDocument | LeftOut> {
  const idProblem = documentIdProblem(path);
  if (idProblem !== null) return leftOut(path, 'id', `as an id it ${idProblem}`);
  try {
    const file = join(root, path);
    const { size, mtimeMs } = await stat(file);
    if (size > limits.documentTextBytesMax) return tooLarge(path, size);
    const bytes = await readFile(file);
    // It may have grown since its size was asked for.
    if (bytes.byteLength > limits.documentTextBytesMax) return tooLarge(path, bytes.byteLength);
    if (!isUtf8(bytes)) return leftOut(path, 'not-utf8', 'is not UTF-8 text');
    const extension = extname(path).slice(1).toLowerCase();
    const meta = { extension, size: bytes.byteLength, mtime: Math.floor(mtimeMs / 1_000) };
    return { kind: 'document', id: path, text: bytes.toString('utf8'), meta };
  } catch (error) {
    return leftOut(path, 'unreadable', `cannot be read: ${describeError(error)}`);
  }
}

function tooLarge(path: string, bytes: number): LeftOut {
  return leftOut(
    path,
    'large',
    `has ${bytes} bytes, and a document's text at most ${limits.documentTextBytesMax}`,
  );
}

function leftOut(path: string, reason: LeftOutReason, problem: string): LeftOut {
  return { kind: 'left-out', path, reason, problem };
}
