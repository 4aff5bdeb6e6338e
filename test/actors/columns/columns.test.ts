import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { columnsVersion, decodeColumnsRoot } from '../../../actors/columns/column-directory.ts';
import { valueKinds } from '../../../actors/columns/value-kinds.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { type Filter, filterMatches, type MetaObject, parseFilter } from '../../../protocol/filter.ts';
import { limits } from '../../../protocol/limits.ts';
import { formats } from '../../../protocol/version.ts';
import { DataError } from '../../../src/base/assert.ts';
import { parseJson } from '../../../src/base/json.ts';
import {
  type BuiltColumns,
  buildColumns,
  columnsKey,
  filterRows,
  openBuilt,
  rawBlock,
} from '../../support/columns.ts';
import { goldenBytes } from '../../support/golden.ts';
import { randomFilter, randomMeta } from '../../support/metas.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const depthMax = limits.jsonDepthMax;

/** Metas are asked about many times. */
const parsedMetas = new Map<string | null, MetaObject>([[null, {}]]);

function parsed(text: string | null): MetaObject {
  const known = parsedMetas.get(text);
  if (known !== undefined) return known;
  const meta = parseJson(Buffer.from(text ?? '{}'), { depthMax }) as MetaObject;
  parsedMetas.set(text, meta);
  return meta;
}

/** Null where it is one that nobody may send. */
function filterOf(text: string): Filter | null {
  try {
    return parseFilter(parseJson(Buffer.from(text), { depthMax }));
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

const must = (text: string) => filterOf(text) ?? assert.fail(text);

function naiveRows(metas: readonly (string | null)[], filter: Filter): number[] {
  const rows: number[] = [];
  metas.forEach((meta, row) => {
    if (filterMatches(filter, parsed(meta))) rows.push(row);
  });
  return rows;
}

/** Columns name every row that passes, and no other where they say that they are exact. */
function assertAgrees(built: BuiltColumns, metas: readonly (string | null)[], text: string): boolean {
  const filter = must(text);
  const wanted = naiveRows(metas, filter);
  const found = filterRows(built, filter);
  if (found.isExact) assert.deepEqual(found.rows, wanted, text);
  else {
    const named = new Set(found.rows);
    assert.deepEqual(
      wanted.filter((row) => !named.has(row)),
      [],
      text,
    );
  }
  return found.isExact;
}

describe('columns of metas', () => {
  // Where most keys have no column, hardly a filter is answered by columns alone.
  for (const [name, options, exactShareMin] of [
    ['one chunk', {}, 0.02],
    ['many chunks', { rowsMax: 37 }, 0.02],
    ['chunks with fewer columns than keys', { rowsMax: 150, columnsMax: 3 }, 0],
    ['chunks that end by the bytes of their strings', { stringBytes: 2000 }, 0.02],
    ['a directory that is full', { rowsMax: 100, directoryBytesMax: 1500 }, 0],
  ] as const) {
    it(`name the rows that a filter keeps, in ${name}`, async (test) => {
      test.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
      const random = seededRandom(seed);
      let filters = 0;
      let exact = 0;
      for (let round = 0; round < 5; round++) {
        const metas = Array.from({ length: 20 + Math.floor(random() * 600) }, () => randomMeta(random));
        const built = await buildColumns(metas, options);
        for (let n = 0; n < 250; n++) {
          const text = randomFilter(random);
          if (filterOf(text) === null) continue;
          filters++;
          if (assertAgrees(built, metas, text)) exact++;
        }
      }
      test.diagnostic(`${exact} of ${filters} filters were answered exactly`);
      assert.ok(filters > 500 && exact >= filters * exactShareMin, `${exact} of ${filters}`);
    });
  }

  it('ask no document where no row is left, by indexes as by rows', async () => {
    const metas = Array.from({ length: 40 }, (_, row) => `{"a":${row % 2},"b":${row % 2},"c":1}`);
    const built = await buildColumns(metas, { columnsMax: 2 });
    const { rows, isExact, columnsRead } = filterRows(built, must('{"a":0,"b":1,"c":1}'));
    assert.deepEqual({ rows, isExact, columnsRead }, { rows: [], isExact: true, columnsRead: 2 });
  });

  it('know all of the kinds of every width', async (test) => {
    test.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    for (const range of [1, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1]) {
      const low = Math.floor((random() - 0.5) * range);
      const values = [
        low,
        low + range,
        ...Array.from({ length: 100 }, () => low + Math.floor(random() * range)),
      ];
      const metas = values.map((n) => (random() < 0.1 ? null : `{"n":${n}}`));
      const built = await buildColumns(metas);
      for (const value of values.slice(0, 20)) {
        for (const condition of [value, `{"ne":${value}}`, `{"lt":${value}}`, `{"gte":${value}.5}`])
          assert.ok(assertAgrees(built, metas, `{"n":${condition}}`));
      }
      assert.ok(assertAgrees(built, metas, `{"n":[${values.slice(0, 30).join(',')}]}`));
    }
  });

  it('a chunk holds as many rows, and as many different strings, as 16 bits name', async () => {
    const metas = Array.from({ length: 65_536 + 100 }, (_, row) => `{"id":"${row.toString(36)}","n":${row}}`);
    const built = await buildColumns(metas);
    const rowsOf = (text: string) => filterRows(built, must(text)).rows;

    assert.equal(openBuilt(built)?.chunkCount, 2);
    for (const row of [0, 65_534, 65_535, 65_536, 65_635]) {
      assert.deepEqual(rowsOf(`{"id":"${row.toString(36)}"}`), [row]);
      assert.deepEqual(rowsOf(`{"n":${row},"id":{"ne":"0"}}`), row === 0 ? [] : [row]);
    }
    const many = Array.from({ length: 500 }, (_, at) => at * 131);
    assert.deepEqual(rowsOf(`{"id":${JSON.stringify(many.map((row) => row.toString(36)))}}`), many);
  });

  it('list the rows of a rare key, and mark those of one that many have', async () => {
    const metas = Array.from({ length: 500 }, (_, row) =>
      row % 100 === 7 ? `{"rare":${row},"most":1}` : row % 3 === 0 ? null : '{"most":2}',
    );
    const built = await buildColumns(metas);

    for (const filter of [
      '{"rare":107}',
      '{"rare":{"ne":107}}',
      '{"most":1}',
      '{"most":{"ne":2},"rare":[7,207]}',
    ])
      assert.ok(assertAgrees(built, metas, filter), filter);
  });

  it('leave out chunks whose least and greatest values, or keys, tell enough', async () => {
    const metas = Array.from({ length: 400 }, (_, row) => `{"n":${row},"half":${row < 200 ? '"a"' : 0.5}}`);
    const built = await buildColumns(metas, { rowsMax: 100 });
    const read = (text: string) => filterRows(built, must(text)).columnsRead;

    assert.equal(read('{"n":150}'), 1);
    assert.equal(read('{"n":{"gte":100}}'), 0);
    assert.equal(read('{"n":{"gte":150}}'), 1);
    assert.equal(read('{"n":"150"}'), 0);
    assert.equal(read('{"half":"a"}'), 2);
    assert.equal(read('{"half":0.5}'), 0);
    assert.equal(read('{"nobody":1}'), 0);
    assert.equal(read('{"nobody":{"ne":1}}'), 0);
    assert.deepEqual(filterRows(built, must('{"nobody":1}')).rows, []);
  });

  it('an array is looked at in its document only where a filter names one', async () => {
    const metas = ['{"tags":["a"]}', '{"tags":"a"}', '{"tags":{"a":1}}', null];
    const built = await buildColumns(metas);

    assert.ok(assertAgrees(built, metas, '{"tags":"a"}'));
    assert.ok(assertAgrees(built, metas, '{"tags":{"ne":"a"}}'));
    assert.ok(assertAgrees(built, metas, '{"tags":{"gt":1}}'));
    assert.ok(!assertAgrees(built, metas, '{"tags":{"eq":["a"]}}'));
  });

  it('hold the 256 most frequent keys, and leave the others to the documents', async () => {
    const keys = (count: number) => Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join(',');
    const metas = [...Array.from({ length: 3 }, () => `{${keys(256)}}`), `{"once":1,${keys(10)}}`];
    const built = await buildColumns(metas);
    const directory = openBuilt(built) ?? assert.fail();

    assert.equal(directory.hasEveryKey(0), false);
    assert.equal(directory.column(0, 'k255')?.counts[valueKinds.integer], 3);
    assert.equal(directory.column(0, 'once'), null);
    assert.deepEqual(filterRows(built, must('{"once":1}')), {
      rows: [0, 1, 2, 3],
      isExact: false,
      columnsRead: 0,
    });
    assert.deepEqual(filterRows(built, must('{"k255":255}')).rows, [0, 1, 2]);
    assert.deepEqual(filterRows(built, must('{"k255":255,"once":1}')).rows, [0, 1, 2]);
  });

  it('a meta of as many keys as fit costs columns and no more', async () => {
    const metas = Array.from({ length: 40 }, (_, row) => {
      const members = Array.from({ length: 1000 }, (_, i) => `"${row}-${i}":"${i}"`);
      return `{"same":${row},${members.join(',')}}`;
    });
    const built = await buildColumns(metas);

    assert.deepEqual(filterRows(built, must('{"same":17}')).rows, [17]);
    assert.ok(filterRows(built, must('{"39-999":"999"}')).rows.includes(39));
  });

  it('documents without meta have no directory at all', async () => {
    const built = await buildColumns([null, '{}', ' { } ', null]);

    assert.equal(decodeColumnsRoot(built.root, columnsKey).directory, null);
    assert.ok(built.root.length < 64);
    assert.deepEqual(built.rawBytes, {});
  });

  it('of a key that comes twice the last value counts, however it is written', async () => {
    const metas = ['{"a":1,"a":"x"}', '{"a":2,"\\u0061":1}', '{"a":1,"b":2,"a":[1]}'];
    const built = await buildColumns(metas);

    assert.deepEqual(filterRows(built, must('{"a":1}')).rows, [1]);
    assert.deepEqual(filterRows(built, must('{"a":"x"}')).rows, [0]);
  });

  it('a stored meta that is no JSON is an error that says so', async () => {
    for (const meta of ['{', '[]', '{"a"}', '{"a":1,}', '{"a":tru}', '{"a":"x', '{"a":1'])
      await assert.rejects(buildColumns([meta]), DataError, meta);
  });

  it('writers share their memory in turn, and nothing else', async () => {
    const metas = Array.from({ length: 300 }, (_, row) => `{"word":"${row % 7}","n":${row}}`);
    const first = await buildColumns(metas);
    await buildColumns(['{"word":"other","more":[1]}', null]);

    assert.deepEqual((await buildColumns(metas)).bytes, first.bytes);
  });
});

/** All that a filter could reach. */
function readEverything(built: BuiltColumns): void {
  for (const filter of [
    '{"a":{"ne":5}}',
    '{"b":"v1"}',
    '{"z":[1,"a",null,0.1]}',
    '{"kind":true,"größe":{"gt":1}}',
  ])
    filterRows(built, must(filter));
}

describe('the bytes of columns', () => {
  const random = seededRandom(7);
  const metas = Array.from({ length: 300 }, () => randomMeta(random));

  it('stay what they are', async () => {
    const built = await buildColumns(metas, { rowsMax: 120 });
    const made = Buffer.concat([built.root, built.bytes]);

    const golden = goldenBytes(`columns-v${columnsVersion}.bin`, made);

    assert.deepEqual(golden, made);
    assert.equal(formats.columns.version, columnsVersion);
    const bytes = golden.subarray(built.root.length);
    readEverything({ ...built, root: golden.subarray(0, built.root.length), bytes });
  });

  /** Inside of a good checksum: as if a bug had written it. */
  it('that contradict each other are damaged data, whatever they are', async () => {
    const built = await buildColumns(metas, { rowsMax: 120 });
    const { directory } = decodeColumnsRoot(built.root, columnsKey);
    const place = directory ?? assert.fail();
    const spoil = seededRandom(11);
    let refused = 0;
    const { ColumnDirectory } = await import('../../../actors/columns/column-directory.ts');
    const { readColumn } = await import('../../../actors/columns/column-block.ts');
    const { evaluateChunk, planChunk } = await import('../../../actors/columns/evaluate-filter.ts');
    const { columnTerms } = await import('../../../actors/columns/filter-terms.ts');
    const terms = columnTerms(must('{"a":{"ne":5},"b":{"ne":"v1"},"z":{"ne":1}}'));
    const rounds = 3000;
    for (let round = 0; round < rounds; round++) {
      const raw = Buffer.from(rawBlock(built.bytes, place));
      const aligned = Buffer.from(new ArrayBuffer(raw.length));
      raw.copy(aligned);
      const inDirectory = round % 2 === 0;
      const spoilOne = (bytes: Buffer) => {
        bytes[Math.floor(spoil() * Math.min(bytes.length, 700))] = Math.floor(spoil() * 256);
      };
      if (inDirectory) spoilOne(aligned);
      try {
        const opened = new ColumnDirectory(aligned, built.rowCount, {
          name: columnsKey,
          offset: place.offset,
        });
        for (let chunk = 0; chunk < opened.chunkCount; chunk++) {
          const plan = planChunk(opened, chunk, terms);
          if (plan.kind !== 'columns' || inDirectory) continue;
          const columns = plan.terms.map(({ column }) => {
            const bytes = Buffer.from(new ArrayBuffer(rawBlock(built.bytes, column.place).length));
            rawBlock(built.bytes, column.place).copy(bytes);
            spoilOne(bytes);
            return readColumn(bytes, { name: columnsKey, offset: 0 });
          });
          if (columns.every(({ rowCount }) => rowCount === opened.rowCount(chunk)))
            evaluateChunk(opened.rowCount(chunk), plan.terms, columns, { isExact: true });
        }
      } catch (error) {
        assert.ok(error instanceof DataError, String(error));
        refused++;
      }
    }
    assert.ok(refused > rounds / 4, `${refused} of ${rounds}`);
  });
});
