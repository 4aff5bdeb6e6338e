/**
 * What decoding a page takes, by our decoders and by hyparquet's, which are the reason of a decision in actors/import/README.md:
 * milliseconds for a million values, the best of several rounds, and how much memory one round left for the collector.
 *
 * Run: node dist/test/bench/parquet-decoders.bench.js [ROUNDS]
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readDataPage as readTheirs, readDataPageV2 as readTheirsV2 } from 'hyparquet/src/datapage.js';
import { getSchemaPath } from 'hyparquet/src/schema.js';
import { readDataPage, readDataPageV2, readDictionaryPage } from '../../actors/import/parquet/datapage.ts';
import {
  footerBytes,
  type PageHeader,
  readFooter,
  readPageHeader,
} from '../../actors/import/parquet/metadata.ts';
import type { PageValues } from '../../actors/import/parquet/page-values.ts';
import { Oracle } from '../support/duckdb.ts';

const columns: readonly (readonly [name: string, select: string])[] = [
  ['dictionary of texts', "'value ' || (hash(i) % 1000)"],
  ['texts', "'value ' || hash(i)"],
  ['integers of 64 bits', '(hash(i) // 2)::BIGINT'],
  ['rising integers', '1700000000000 + i * 1000 + hash(i) % 1000'],
  ['doubles', 'hash(i) / 7.0'],
];
const versions = [
  ['v1', ''],
  ['v2', ', PARQUET_VERSION v2'],
] as const;

interface Page {
  readonly header: PageHeader;
  readonly packed: Buffer;
}

function pagesOf(file: Buffer, position: number, end: number): Page[] {
  const pages: Page[] = [];
  for (let at = position; at < end; ) {
    const found = readPageHeader(file.subarray(at, end), true);
    if (found === null) break;
    const from = at + found.length;
    at = from + found.header.compressed_page_size;
    // Where a decoder finds its bytes is not what is measured.
    pages.push({ header: found.header, packed: Buffer.from(file.subarray(from, at)) });
  }
  return pages;
}

function best(rounds: number, work: () => void): { readonly ms: number; readonly megabytes: number } {
  let [ms, megabytes] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < rounds; round++) {
    globalThis.gc?.();
    const before = process.memoryUsage();
    const begun = process.hrtime.bigint();
    work();
    ms = Math.min(ms, Number(process.hrtime.bigint() - begun) / 1e6);
    const after = process.memoryUsage();
    megabytes = Math.min(
      megabytes,
      (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / 1e6,
    );
  }
  return { ms, megabytes };
}

const rounds = Number(process.argv[2] ?? 7);
const folder = mkdtempSync(join(tmpdir(), 'parquet-decoders-'));
const oracle = await Oracle.open();
const kept: unknown[] = [];
try {
  for (const [version, option] of versions) {
    for (const [name, select] of columns) {
      const path = join(folder, 't.parquet');
      await oracle.rows(
        `COPY (SELECT ${select} AS v FROM range(1000000) t(i)) TO '${path}' (FORMAT parquet, COMPRESSION uncompressed, ROW_GROUP_SIZE 1000000${option})`,
      );
      const file = readFileSync(path);
      const { schema, row_groups: groups } = readFooter(
        file.subarray(-footerBytes(file.subarray(-8), file.length)),
      );
      const chunk = groups[0]?.columns[0]?.meta_data;
      const element = schema[1];
      if (chunk === undefined || element === undefined || element.type === undefined)
        throw new Error('no column');
      const begin = Number(chunk.dictionary_page_offset ?? chunk.data_page_offset);
      const pages = pagesOf(file, begin, begin + Number(chunk.total_compressed_size));
      const dictionaryPage = pages.find(({ header }) => header.type === 'DICTIONARY_PAGE');
      const dataPages = pages.filter(({ header }) => header.type.startsWith('DATA_PAGE'));
      const { codec } = chunk;
      const levels = {
        repetitionMax: 0,
        hasLevels: false,
        definitionMax: element.repetition_type === 'OPTIONAL' ? 1 : 0,
      };
      const dictionary: PageValues | null =
        dictionaryPage === undefined
          ? null
          : readDictionaryPage(dictionaryPage.header, dictionaryPage.packed, {
              element,
              codec,
              dictionary: null,
              ...levels,
            });
      const decoder = { type: element.type, element, codec, schemaPath: getSchemaPath(schema, ['v']) };
      const ours = best(rounds, () => {
        kept.length = 0;
        for (const { header, packed } of dataPages)
          kept.push(
            (header.type === 'DATA_PAGE' ? readDataPage : readDataPageV2)(header, packed, {
              element,
              codec,
              dictionary,
              ...levels,
            }),
          );
      });
      const theirs = best(rounds, () => {
        kept.length = 0;
        for (const { header, packed } of dataPages) {
          const { data_page_header: v1 } = header;
          kept.push(
            v1 === undefined
              ? readTheirsV2(packed, header, decoder as unknown as Parameters<typeof readTheirsV2>[2])
              : readTheirs(packed, v1, decoder as unknown as Parameters<typeof readTheirs>[2]),
          );
        }
      });
      const encoding = (dataPages[0]?.header.data_page_header ?? dataPages[0]?.header.data_page_header_v2)
        ?.encoding;
      const shown = ({ ms, megabytes }: typeof ours) => `${ms.toFixed(1)} ms ${megabytes.toFixed(0)} MB`;
      process.stdout.write(
        `${version} ${name} (${encoding}): ours ${shown(ours)}, hyparquet ${shown(theirs)}\n`,
      );
    }
  }
} finally {
  oracle.close();
  rmSync(folder, { recursive: true });
}
