/**
 * The browser's files, as `npm run build` left them beside this one. They are served under a folder named by the digest of
 * all of them: modules find each other by relative paths, and what an address holds never changes.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { must } from '../../base/assert.ts';

export interface Asset {
  /** The path below the pages' folder, such as `views/search.js`. */
  readonly name: string;
  readonly type: string;
  readonly body: Buffer;
}

export interface Assets {
  /** The digest of all files together, in hexadecimal. */
  readonly digest: string;
  readonly files: readonly Asset[];
}

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const folder = fileURLToPath(new URL('./browser/', import.meta.url));
const digestCharacters = 16;

/** Throws where they were not built. */
export function readAssets(): Assets {
  const names = namesIn(folder).filter((name) => types[extname(name)] !== undefined);
  const files = names.map((name) => ({
    name,
    type: must(types[extname(name)], 'a type for each file that was chosen by it'),
    body: readFileSync(join(folder, name)),
  }));
  for (const needed of ['main.js', 'console.css', 'icon.svg']) {
    if (!names.includes(needed)) throw new Error(`the pages lack ${needed}: run npm run build`);
  }
  return { digest: digestOf(files), files };
}

function namesIn(path: string): string[] {
  if (!existsSync(path)) return [];
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names.map((name) => name.replaceAll('\\', '/')).toSorted();
}

function digestOf(files: readonly Asset[]): string {
  const hash = createHash('sha256');
  for (const { name, body } of files) hash.update(`${name}\0${body.byteLength}\0`).update(body);
  return hash.digest('hex').slice(0, digestCharacters);
}
