import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { Oracle, Place } from './check-search.ts';
import type { SearchCase } from './search-cases.ts';

/** ripgrep's opinion of the files of a folder: every file, every byte, nothing guessed from names or byte order marks. */
const options = ['-uuu', '-a', '--no-config', '-U', '--encoding', 'none'];

export function ripgrepIsInstalled(): boolean {
  return spawnSync('rg', ['--version']).error === undefined;
}

/** `isDocument`: files of the folder that the loader left out are left out here too. */
export function ripgrepOracle(folder: string, isDocument: (id: string) => boolean): Oracle {
  return {
    async matching(asked) {
      const listed = await ripgrep(folder, asked, ['-l', '-0'], ['./']);
      const ids = listed.toString().split('\0').map(idOf);
      return new Set(ids.filter((id) => id !== '' && isDocument(id)));
    },
    async firstMatches(asked, ids) {
      if (ids.length === 0) return new Map();
      const paths = ids.map((id) => `./${id}`);
      return firstPlaces((await ripgrep(folder, asked, ['--json'], paths)).toString());
    },
  };
}

function idOf(path: string): string {
  return path.replace(/^\.\//, '');
}

/** A whole command that lists the files which match, by two threads. */
export function ripgrepCommand(asked: SearchCase): string[] {
  return ['rg', ...argumentsFor(asked, ['-l', '-j2'], ['./'])];
}

function argumentsFor(
  { query, isRegex }: SearchCase,
  more: readonly string[],
  paths: readonly string[],
): string[] {
  const kind = isRegex ? [] : ['-i', '-F'];
  return [...options, ...kind, ...more, '-e', query, '--', ...paths];
}

async function ripgrep(
  folder: string,
  asked: SearchCase,
  more: readonly string[],
  paths: readonly string[],
): Promise<Buffer> {
  const child = spawn('rg', argumentsFor(asked, more, paths), {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const parts: Buffer[] = [];
  child.stdout.on('data', (part: Buffer) => parts.push(part));
  const [code] = (await once(child, 'close')) as [number | null];
  // 1 means that nothing matched.
  if (code !== 0 && code !== 1) throw new Error(`rg ended with ${code} for ${JSON.stringify(asked.query)}`);
  return Buffer.concat(parts);
}

interface MatchEvent {
  readonly path: { readonly text: string };
  /** The number of the first of the lines. */
  readonly line_number: number;
  readonly absolute_offset: number;
  readonly lines: { readonly text: string };
  readonly submatches: readonly { readonly start: number; readonly end: number }[];
}

function firstPlaces(json: string): Map<string, Place> {
  const places = new Map<string, Place>();
  for (const line of json.split('\n')) {
    if (line === '') continue;
    const { type, data } = JSON.parse(line) as { readonly type: string; readonly data: MatchEvent };
    if (type !== 'match') continue;
    const id = idOf(data.path.text);
    if (!places.has(id)) places.set(id, placeOf(data));
  }
  return places;
}

function placeOf({ line_number, absolute_offset, lines, submatches }: MatchEvent): Place {
  const { start, end } = submatches[0] ?? { start: 0, end: 0 };
  const before = Buffer.from(lines.text).subarray(0, start);
  const lineFeeds = before.reduce((count, byte) => count + (byte === 0x0a ? 1 : 0), 0);
  return { start: absolute_offset + start, end: absolute_offset + end, lineNumber: line_number + lineFeeds };
}
