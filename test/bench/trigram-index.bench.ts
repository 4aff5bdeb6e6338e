/**
 * Building a segment's trigram index and asking it: speed, size by part, time of queries on pages in memory.
 * Run: node dist/test/bench/trigram-index.bench.js [folder …] [--paragraphs=BYTES] [--log-lines=N] [--mb=MAX]
 * Without a folder: this repository's sources with its packages, and 200,000 log lines.
 */
import { emptyReadTally } from '../../actors/storage/block-fetch.ts';
import { blockKinds } from '../../actors/storage/segment-format.ts';
import { MemtableIndex } from '../../actors/text/memtable-index.ts';
import { PostingsCursor } from '../../actors/text/postings.ts';
import { findInPage, trigramBound } from '../../actors/text/trigram-page.ts';
import type { TrigramQuery } from '../../actors/text/trigram-query.ts';
import { logLines, paragraphsOf, readTexts } from '../support/text-corpora.ts';
import { buildIndex, literalQuery, openIndex, shortMatches } from '../support/trigram-index.ts';

const print = (line: string) => process.stdout.write(`${line}\n`);
const MB = 1e6;

const options = new Map<string, number>();
const folders: string[] = [];
for (const argument of process.argv.slice(2)) {
  const [, name, value] = /^--([a-z-]+)=(\d+)$/.exec(argument) ?? [];
  if (name === undefined) folders.push(argument);
  else options.set(name, Number(value));
}
/** The pattern of paths that are taken: given with TIDEBASE_BENCH_NAMES, such as '\\.md$'. */
const namePattern = new RegExp(process.env.TIDEBASE_BENCH_NAMES ?? '^(?!.*/\\.git/)');
const bytesMax = (options.get('mb') ?? 150) * MB;
const paragraphBytes = options.get('paragraphs') ?? 0;
const logLineCount = options.get('log-lines') ?? (folders.length === 0 ? 200_000 : 0);
if (folders.length === 0 && !options.has('log-lines')) folders.push('.');

/** Processor time of this process, of all threads: the machine may be busy with others. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What the pages of one span hold, and what the same lists would take otherwise. */
function partsOf(pages: readonly Uint8Array[], groupCount: number) {
  const parts = {
    trigrams: 0,
    postings: 0,
    postingsBytes: 0,
    dictionaryBytes: 0,
    varintBytes: 0,
    mixedBytes: 0,
  };
  const ages = new Uint32Array(groupCount);
  for (const bytes of pages) {
    parts.dictionaryBytes += bytes.length;
    const page = { bytes, bound: groupCount, place: { name: 'page', offset: 0 } };
    for (const entry of findInPage(page, 0, trigramBound - 1)) {
      new PostingsCursor(entry).readBelow(groupCount, ages, 0);
      let varintBytes = 0;
      let previous = -1;
      for (let i = 0; i < entry.count; i++) {
        const gap = (ages[i] as number) - previous - 1;
        varintBytes += gap < 0x80 ? 1 : gap < 0x4000 ? 2 : 3;
        previous = ages[i] as number;
      }
      parts.trigrams++;
      parts.postings += entry.count;
      parts.postingsBytes += entry.end - entry.start;
      parts.dictionaryBytes -= entry.end - entry.start;
      parts.varintBytes += varintBytes;
      parts.mixedBytes += Math.min(varintBytes, Math.ceil(groupCount / 8));
    }
  }
  return parts;
}

async function measureBuild(name: string, texts: readonly Uint8Array[]) {
  const textBytes = texts.reduce((sum, text) => sum + text.length, 0);
  const rawPages: Uint8Array[] = [];
  const onBlock = (kind: number, raw: Uint8Array) => {
    if (kind === blockKinds.trigrams) rawPages.push(raw);
  };
  let built = await buildIndex(texts, { onBlock });
  const startedAt = performance.now();
  const startedCpuMs = cpuMs();
  built = await buildIndex(texts);
  const wallMs = performance.now() - startedAt;
  const usedMs = cpuMs() - startedCpuMs;
  const share = (bytes: number) => `${((bytes / textBytes) * 100).toFixed(2)} %`;
  const of = (kind: number) => built.bytesByKind.get(kind) ?? 0;
  const sum = [...built.bytesByKind.values()].reduce((total, bytes) => total + bytes, 0);
  const { reader } = await openIndex(built);
  const { groupCount } = reader.rowGroups;
  print(
    `\n${name}: ${texts.length} documents, ${(textBytes / MB).toFixed(1)} MB, ${groupCount} groups, ${built.blockCount - 2} pages`,
  );
  print(
    `  built at ${(textBytes / 1000 / wallMs).toFixed(0)} MB/s, ${(textBytes / 1000 / usedMs).toFixed(0)} MB per second of processor`,
  );
  print(
    `  size ${share(sum)}: pages ${share(of(blockKinds.trigrams))}, sparse index ${share(of(blockKinds.trigramSparse))}, groups ${share(of(blockKinds.rowGroups))}`,
  );
  const parts = partsOf(rawPages, groupCount);
  print(
    `  before compression: postings ${share(parts.postingsBytes)}, dictionary ${share(parts.dictionaryBytes)}; ` +
      `${parts.trigrams} trigrams, ${parts.postings} postings of ${((parts.postingsBytes * 8) / parts.postings).toFixed(2)} bits, ` +
      `as varints ${((parts.varintBytes * 8) / parts.postings).toFixed(2)}, as the better of those and bitmaps ${((parts.mixedBytes * 8) / parts.postings).toFixed(2)}`,
  );
  return built;
}

/** Microseconds a run, the best of several rounds. */
async function timed(run: () => Promise<number>): Promise<{ readonly us: number; readonly found: number }> {
  let us = Number.POSITIVE_INFINITY;
  let found = 0;
  for (let round = 0; round < 7; round++) {
    const startedAt = performance.now();
    for (let n = 0; n < 20; n++) found = await run();
    us = Math.min(us, ((performance.now() - startedAt) / 20) * 1000);
  }
  return { us, found };
}

async function measureQueries(built: Awaited<ReturnType<typeof buildIndex>>, literals: readonly string[]) {
  const { reader } = await openIndex(built, 512e6);
  const tally = emptyReadTally();
  const count = async (query: TrigramQuery, enough: number) => {
    const candidates = reader.search(query);
    let found = 0;
    while (found < enough) {
      const next = candidates.next(tally);
      const groups = next instanceof Promise ? await next : next;
      if (groups === null) break;
      found += groups.length;
    }
    return found;
  };
  const ask = async (name: string, query: TrigramQuery) => {
    await count(query, Number.POSITIVE_INFINITY);
    const first = await timed(() => count(query, 20));
    const every = await timed(() => count(query, Number.POSITIVE_INFINITY));
    print(
      `  ${name.padEnd(44)} ${every.found} groups: all ${every.us.toFixed(0)} µs, the first 20 ${first.us.toFixed(0)} µs`,
    );
  };
  for (const literal of literals) await ask(JSON.stringify(literal), literalQuery(literal));
  await ask('any of them', { kind: 'or', parts: literals.map(literalQuery) });
}

function measureMemtable(name: string, texts: readonly Uint8Array[], literals: readonly string[]): void {
  const some = texts.slice(0, 10_000);
  const textBytes = some.reduce((sum, text) => sum + text.length, 0);
  let index = new MemtableIndex();
  let usedMs = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 5; round++) {
    index = new MemtableIndex();
    const startedCpuMs = cpuMs();
    for (const text of some) index.add(text);
    usedMs = Math.min(usedMs, cpuMs() - startedCpuMs);
  }
  print(
    `  memtable of ${some.length} documents of ${name}, ${(textBytes / MB).toFixed(1)} MB: ${(textBytes / 1000 / usedMs).toFixed(0)} MB per second of processor, memory ${((index.bytes / textBytes) * 100).toFixed(1)} % of the text`,
  );
  const target = new Uint32Array(some.length);
  for (const literal of [...literals, 'zqxjkv']) {
    const query = shortMatches(literalQuery(literal));
    let us = Number.POSITIVE_INFINITY;
    let found = 0;
    for (let round = 0; round < 200; round++) {
      const startedAt = performance.now();
      found = index.findBelow(query, some.length, target);
      us = Math.min(us, (performance.now() - startedAt) * 1000);
    }
    print(`    ${JSON.stringify(literal)}: ${found} rows, ${us.toFixed(0)} µs`);
  }
}

/** Literals from the texts: a rare one, and words that are frequent. */
function literalsOf(texts: readonly Uint8Array[]): string[] {
  const sample = Buffer.from(texts[Math.floor(texts.length / 2)] ?? []).toString();
  const longest =
    (sample.match(/[A-Za-z_]{8,}/g) ?? ['nothing']).sort((a, b) => b.length - a.length)[0] ?? '';
  return [longest, sample.slice(20, 44), 'the', 'return', 'error', 'on', '~'];
}

async function measure(name: string, texts: readonly Uint8Array[]): Promise<void> {
  const literals = literalsOf(texts);
  await measureQueries(await measureBuild(name, texts), literals);
  measureMemtable(name, texts, literals);
}

for (const folder of folders) {
  const texts = readTexts(folder, bytesMax, namePattern);
  await measure(folder, paragraphBytes === 0 ? texts : paragraphsOf(texts, paragraphBytes));
}
if (logLineCount > 0) {
  await measure('log lines', [...logLines(1, logLineCount)]);
}
