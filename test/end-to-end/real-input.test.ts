/**
 * The loader, the scan and the answers' places on a small folder, against a naive scan. The same on tens of megabytes
 * of real files, against ripgrep, is load-tests/real-input.ts.
 */
import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { checkCase, listNewestFirst, type Oracle, type Place } from '../../load-tests/check-search.ts';
import { runLoad } from '../../load-tests/load-command.ts';
import { Connections, startMeasured } from '../../load-tests/measured-server.ts';
import type { SearchCase } from '../../load-tests/search-cases.ts';
import { temporaryFolder } from '../../load-tests/server.ts';
import { ApiClient } from '../support/api-client.ts';

const fileCount = 300;
const namespace = 'files';

const literals = ['import', 'RETURN', '=> {', 'é', 'naïve', '日本', 'a', '\u212A', '"', '\\d+', 'ß'];
const nowhere = 'not in any file';
/** Patterns that mean the same in JavaScript: no `.` or `$` beside a carriage return. */
const regexes = [
  '(?m)^import [a-z]+',
  '(?m)(?i)^RETURN ',
  '(?m)[0-9]{3}-[0-9]{2}',
  '(?m)\\}\\n\\nexport ',
  '(?m)[^\\x00-\\x7F]{2,}',
  '(?m)(foo|ba[rz])+[;,]',
  '(?m)x{40,}',
];

test('a loaded folder is found as a naive scan of its files finds it', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  const folder = temporaryFolder();
  const texts = writeCorpus(folder, seed);
  const server = await startMeasured({ env: { TIDEBASE_COMMIT_MS: '20' } });
  t.after(() => server.process.stop());
  const to = { url: server.process.url, key: server.key };

  const loaded = await runLoad([folder, '--namespace', namespace], to);

  // Where loading takes seconds it says how far it is.
  assert.match(loaded.errors, /^(\d+ files loaded, [\d.]+ MB\n)*$/, `seed ${seed}`);
  assert.equal(loaded.code, 0, loaded.output);
  assert.match(loaded.output, new RegExp(`^loaded ${texts.size} files, `));
  for (const line of [
    /left out 1 file, over 2 MB: large\.txt$/m,
    /left out 2 files, not UTF-8 text: latin-1\.txt, /,
  ]) {
    assert.match(loaded.output, line);
  }
  const client = new Connections(to.url, to.key, 1);
  t.after(() => client.close());
  const newestFirst = await listNewestFirst(client, namespace);
  assert.deepEqual(newestFirst.toSorted(), [...texts.keys()].toSorted(), `seed ${seed}`);
  await checkDocuments(new ApiClient(to.url, to.key), texts);
  const textOf = (id: string) => texts.get(id) ?? Buffer.alloc(0);
  const oracle = naiveOracle(texts);
  for (const asked of [...literals.map(literalCase), ...regexes.map(regexCase), literalCase(nowhere)]) {
    const checked = await checkCase({ client, namespace, newestFirst, textOf }, oracle, asked);
    assert.deepEqual(checked.differences, [], `${JSON.stringify(asked.query)}, seed ${seed}`);
    assert.equal(checked.expected > 0, asked.query !== nowhere, `${asked.query} tests nothing, seed ${seed}`);
  }
});

const literalCase = (query: string): SearchCase => ({ query, isRegex: false });
const regexCase = (query: string): SearchCase => ({ query, isRegex: true });

/** What the loader made of two files, whole. */
async function checkDocuments(api: ApiClient, texts: ReadonlyMap<string, Buffer>): Promise<void> {
  for (const id of ['dated.tar.GZ', 'odd names/100% #1? é.md']) {
    const { text, meta } = await api.get(namespace, id);
    const bytes = texts.get(id) ?? Buffer.alloc(0);
    assert.equal(text, bytes.toString());
    const extension = id.endsWith('GZ') ? 'gz' : 'md';
    assert.deepEqual(meta, { extension, size: bytes.byteLength, mtime: mtimeSeconds });
  }
  api.close();
}

const mtimeSeconds = 1_600_000_000;

/** Writes the files and answers those that are to be documents. */
function writeCorpus(folder: string, seed: number): Map<string, Buffer> {
  const next = randomNumbers(seed);
  const texts = new Map<string, Buffer>();
  const write = (path: string, content: string | Buffer): Buffer => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    const bytes = Buffer.from(content as Buffer);
    writeFileSync(join(folder, path), bytes);
    return bytes;
  };
  for (let i = 0; i < fileCount; i++) {
    const path = `part-${i % 7}/${i % 3 === 0 ? 'deep/er/' : ''}file-${i}.${['ts', 'md', 'txt', ''][i % 4]}`;
    texts.set(path, write(path, randomText(next)));
  }
  const special = {
    'empty.txt': '',
    'dated.tar.GZ': 'return 555-12\n',
    'odd names/100% #1? é.md': '# naïve\nimport odd\n',
    '.hidden/.dot': 'foo;\n',
    'byte-order-mark.txt': '\uFEFFimport first\n',
    'nul.txt': 'a\0b import\n',
    'blocks.ts': '}\n\nexport const a = 300-12;\n',
    'largest.txt': Buffer.concat([Buffer.alloc(1_999_990, 'b '), Buffer.from(' import  \n')]),
  };
  for (const [path, content] of Object.entries(special)) {
    texts.set(path, write(path, content));
    utimesSync(join(folder, path), mtimeSeconds, mtimeSeconds + 0.9);
  }
  write('large.txt', Buffer.alloc(2_000_001, 'import '));
  write('latin-1.txt', Buffer.from('import caf\xe9', 'latin1'));
  write('surrogate.txt', Buffer.from([0x61, 0xed, 0xa0, 0x80]));
  symlinkSync('empty.txt', join(folder, 'link.txt'));
  symlinkSync('.', join(folder, 'circle'));
  return texts;
}

const pieces = [
  'import thing',
  'return value',
  'const f = () => {',
  '}',
  '',
  'export default',
  'Return ',
  'naïve café',
  '日本語の文字',
  '555-12',
  'foo,bar;baz,',
  '"quoted" \\d+',
  'Straße',
  '300 \u212A',
  'x'.repeat(60),
  'wide '.repeat(150),
  '\t\t// note',
] as const;

function randomText(next: () => number): string {
  const lineEnd = next() % 5 === 0 ? '\r\n' : '\n';
  const lines = Array.from({ length: next() % 30 }, () => {
    const words = Array.from({ length: 1 + (next() % 3) }, () => pieces[next() % pieces.length] ?? '');
    return words.join(next() % 2 === 0 ? ' ' : '');
  });
  return lines.join(lineEnd) + (next() % 2 === 0 ? lineEnd : '');
}

/** Whole numbers from a seed. */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return (x ^ (x >>> 14)) >>> 0;
  };
}

/** Every file, from its beginning, by JavaScript's own regular expressions. */
function naiveOracle(texts: ReadonlyMap<string, Buffer>): Oracle {
  const strings = new Map([...texts].map(([id, bytes]) => [id, bytes.toString()]));
  return {
    async matching(asked) {
      const pattern = patternOf(asked);
      return new Set([...strings].filter(([, text]) => pattern.test(text)).map(([id]) => id));
    },
    async firstMatches(asked, ids) {
      const pattern = patternOf(asked);
      return new Map(ids.map((id) => [id, placeOf(pattern, strings.get(id) ?? '')]));
    },
  };
}

function patternOf({ query, isRegex }: SearchCase): RegExp {
  if (!isRegex) return new RegExp(query.replaceAll(/[$()*+./?[\\\]^{|}]/g, '\\$&'), 'iu');
  const bare = query.replace('(?m)', '');
  return bare.startsWith('(?i)') ? new RegExp(bare.slice(4), 'imu') : new RegExp(bare, 'mu');
}

function placeOf(pattern: RegExp, text: string): Place {
  const match = pattern.exec(text);
  const before = text.slice(0, match?.index ?? 0);
  const start = Buffer.byteLength(before);
  return { start, end: start + Buffer.byteLength(match?.[0] ?? ''), lineNumber: before.split('\n').length };
}
