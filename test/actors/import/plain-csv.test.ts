import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CsvDocuments, type CsvShape } from '../../../actors/kernels/csv-documents.ts';
import { ImportFolder } from '../../support/imported-segments.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const folder = new ImportFolder();
after(() => folder.close());

/** Rows that the kernel has made. */
let made = 0;
const { make } = CsvDocuments.prototype;
CsvDocuments.prototype.make = function (...given) {
  const rows = make.apply(this, given);
  made += rows;
  return rows;
};

const byKernel = { rowByRow: false };
const byRows = { rowByRow: true };

/** Imports a file by the kernel and by its twin, and asserts that both make one segment; answers how many rows were the kernel's. */
async function compared(
  path: string,
  query: string,
  shown = query,
): Promise<{ rows: number; textOnly: number; made: number }> {
  made = 0;
  const kernels = await folder.import(path, query, byKernel);
  const madeRows = made;
  const twins = await folder.import(path, query, byRows);
  assert.equal(made, madeRows, 'the twin has no kernel');
  assert.deepEqual(kernels.built, twins.built, shown);
  assert.ok(kernels.segment.equals(twins.segment), shown);
  const { rowCount: rows, textOnly } = kernels.built;
  return { rows, textOnly, made: madeRows };
}

type Random = () => number;
const pick = <T>(random: Random, all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
const digits = (random: Random, most: number) =>
  Array.from({ length: 1 + Math.floor(random() * most) }, () => Math.floor(random() * 10)).join('');

/** Values of a column, of which most are of its kind. */
const values: Readonly<Record<string, (random: Random) => string>> = {
  int: (random) =>
    pick(random, [
      '0',
      '7',
      '-12',
      '123456789012345',
      '9007199254740991',
      '9007199254740992',
      '-9223372036854775808',
      '9223372036854775807',
      '1234567890123456789',
      String(Math.floor(random() * 1e6)),
    ]),
  float: (random) =>
    pick(random, [
      '0.5',
      '-0.0',
      '12.25',
      '3',
      '1.23456789012345',
      '0.1234567890123456789',
      '-1234567890123.5',
      `${Math.floor(random() * 1e4)}.${digits(random, 3)}`,
      '1e3',
      '2.5E-7',
    ]),
  bool: (random) => pick(random, ['true', 'false', 'TRUE', 'False']),
  date: (random) =>
    pick(random, [
      '2024-02-29',
      '1970-01-01',
      '0000-01-01',
      '0001-03-01',
      '1969-12-31',
      '9999-12-31',
      '1900-02-28',
      '2000-02-29',
    ]),
  time: (random) =>
    pick(random, [
      '2024-02-29 23:59:59',
      '1970-01-01 00:00:00',
      '0000-02-29 12:00:01',
      '1969-12-31 23:59:59',
    ]),
  text: (random) =>
    pick(random, [
      'plain',
      'größe 潮汐',
      '"a, b"',
      '"two\nlines"',
      '"a ""word"""',
      'back\\slash',
      'tab\there',
      '"\r\n"',
      '\u0001\u001f\u007f',
      '"quoted"',
      '""',
      `${'long '.repeat(random() * 60)}`,
      `${'x'.repeat(random() * 20)}\\`,
      digits(random, 4),
    ]),
};

/** What makes a column's values of another kind, or an error. */
const odd = [
  '007',
  '-',
  '+5',
  '1.',
  '.5',
  '9223372036854775808',
  '-9223372036854775809',
  '2023-02-29',
  '2024-13-01',
  '2024-01-02 24:00:00',
  '2024-01-02T03:04:05',
  '-0',
  '00.5',
  'truth',
  '1_000',
  '12 ',
  ' 12',
  '0x10',
  '99999999999999999999',
];

function randomTable(random: Random): { readonly csv: string; readonly query: string } {
  const kinds = Array.from({ length: 1 + Math.floor(random() * 6) }, () => pick(random, Object.keys(values)));
  const names = kinds.map((kind, at) => `${pick(random, ['c', 'größe ', '"" '])}${kind}${at}`);
  const end = pick(random, ['\n', '\r\n', '\r']);
  const strange = random() < 0.3 ? random() * 0.02 : 0;
  const empty = random() * 0.3;
  const randomValue = (kind: string) =>
    random() < empty ? '' : random() < strange ? pick(random, odd) : values[kind]?.(random);
  const line = (row: number) =>
    `${random() < 0.02 ? end : ''}${[`id-${row}`, ...kinds.map(randomValue)].join(',')}`;
  const lines = Array.from({ length: 1 + Math.floor(random() * 1_500) }, (_, row) => line(row));
  const header = ['id', ...names.map((name) => `"${name}"`)].join(',');
  const texts = names
    .filter((_, at) => kinds[at] === 'text' || random() < 0.1)
    .slice(0, 2)
    .map((name) => name.replaceAll('""', '"'));
  const parameters = new URLSearchParams({ format: 'csv' });
  if (random() < 0.5) parameters.set('id', 'id');
  if (texts.length > 0) parameters.set('text', texts.join(','));
  if (random() < 0.2) parameters.set('skip', 'id');
  return { csv: `${header}${end}${lines.join(end)}${random() < 0.5 ? end : ''}`, query: String(parameters) };
}

test('the kernel makes the segment that its twin makes, byte by byte, or the same refusal', async (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const sums = { tables: 0, rows: 0, made: 0 };
  for (let round = 0; round < 60; round++) {
    const { csv, query } = randomTable(random);
    const path = folder.fileOf('random.csv', csv);
    const refused = await folder.refusal(path, query, byRows);
    assert.equal(await folder.refusal(path, query, byKernel), refused, query);
    if (refused !== 'none') continue;
    const { rows, made: madeRows } = await compared(path, query, `round ${round}: ${query}`);
    sums.tables++;
    sums.rows += rows;
    sums.made += madeRows;
  }
  t.diagnostic(JSON.stringify(sums));
  assert.ok(sums.tables >= 20 && sums.made > sums.rows / 10, JSON.stringify(sums));
});

test("rows that are not plain, and long ones, are the twin's, and plain ones after them are the kernel's again", async () => {
  const lines = Array.from({ length: 3_000 }, (_, row) => {
    const text = row % 100 === 50 ? 'word '.repeat(4_000) : row % 7 === 0 ? '"a ""word"""' : `word ${row}`;
    return `${row},${text},${row / 4}`;
  });
  const path = folder.fileOf('long.csv', `n,note,share\n${lines.join('\n')}\n`);

  const { textOnly, made: madeRows } = await compared(path, 'format=csv&text=note');

  assert.equal(textOnly, 30);
  const plain = lines.filter((line) => line.length < 1_000 && !line.includes('""')).length;
  assert.ok(madeRows > plain - 10 && madeRows <= plain, `${madeRows} of ${plain}`);
});

test('rows that fill chunks, batches and windows are the same by the kernel', async () => {
  const line = (row: number) => `${row},word ${row % 1_000},"${'padding '.repeat(row % 9)}${row}"`;
  const lines = Array.from({ length: 140_000 }, (_, row) => line(row));
  const path = folder.fileOf('chunks.csv', `n,note,padding\r\n${lines.join('\r\n')}`);

  const { made: madeRows } = await compared(path, 'format=csv&text=note');

  assert.ok(madeRows > 139_000, `${madeRows} rows`);
});

test('a definition says what looser values mean, and the kernel leaves these to its twin', async () => {
  const loose = (row: number) => `00${row},${row % 2},2024-01-02T03:04:0${row % 9}`;
  const strict = (row: number) => `${row},true,2024-01-02 03:04:05`;
  const lines = Array.from({ length: 400 }, (_, row) => (row % 4 === 0 ? loose(row) : strict(row)));
  const path = folder.fileOf('loose.csv', `n,b,t\n${lines.join('\n')}\n`);
  const query = `format=csv&schema=${encodeURIComponent('n INT, b BOOL, t TIMESTAMP')}`;

  assert.deepEqual(await compared(path, query), { rows: 400, textOnly: 0, made: 300 });
});

const shape: CsvShape = {
  fields: 2,
  id: 0,
  texts: [],
  columns: [{ name: 'n', field: 1, kind: 'int' }],
  idBytesMax: 512,
  metaBytesMax: 16_384,
};

test('the kernel makes no row of which it has not seen the end, and none beyond its room', () => {
  const documents = CsvDocuments.for(shape) as CsvDocuments;
  const text = 'a,1\nb,2\r\nc,3';
  documents.source.bytes.write(text);
  const make = (end: number, room = {}) =>
    documents.make({ from: 0, end }, { rows: 100, bytes: 100_000, number: 1, ...room });

  assert.deepEqual([make(text.length), documents.position], [2, 9]);
  assert.deepEqual([make(3), documents.position], [0, 0]);
  assert.deepEqual([make(text.length, { rows: 1 }), documents.position], [1, 4]);
  assert.deepEqual([make(text.length, { bytes: 100 }), documents.position], [0, 0]);
});

test("a file with more columns, fields or names than the kernel has room for is its twin's", () => {
  const columns = (count: number, name = 'n') =>
    Array.from({ length: count }, (_, at) => ({ name: `${name}${at}`, field: at, kind: 'int' as const }));
  assert.ok(CsvDocuments.for({ ...shape, fields: 256, columns: columns(128) }) !== null);
  assert.equal(CsvDocuments.for({ ...shape, fields: 257 }), null);
  assert.equal(CsvDocuments.for({ ...shape, fields: 200, columns: columns(129) }), null);
  assert.equal(CsvDocuments.for({ ...shape, fields: 200, columns: columns(100, 'x'.repeat(700)) }), null);
});
