import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RowEnds, type RowForm } from '../../../actors/kernels/row-ends.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));

/** The naive twin: byte by byte. Answers behind which bytes rows end. */
function naiveEnds(text: string, form: RowForm): { readonly ends: number[]; readonly isWithin: boolean } {
  const ends: number[] = [];
  let [row, isQuoted] = ['', false];
  for (const [at, byte] of [...text].entries()) {
    if (form === 'csv' && byte === '"') isQuoted = !isQuoted;
    const isEnd = byte === '\n' || (form === 'csv' && byte === '\r');
    if (!isEnd || isQuoted) row += byte;
    else {
      if (isRow(row, form)) ends.push(at + 1);
      row = '';
    }
  }
  return { ends, isWithin: isRow(row, form) };
}

const isRow = (row: string, form: RowForm) => (form === 'csv' ? row : row.replace(/[ \t\r]/gu, '')) !== '';

/** Passes a text piece by piece, and stops behind every `rowsMax` rows; answers where it stopped. */
function passed(
  rows: RowEnds,
  form: RowForm,
  text: string,
  { rowsMax, sizes }: { rowsMax: number; sizes: () => number },
): number[] {
  const stops: number[] = [];
  rows.begin(form);
  for (let at = 0; at < text.length; ) {
    const length = Math.min(sizes(), text.length - at);
    rows.bytes.write(text.slice(at, at + length), 'latin1');
    const count = rows.pass(length, rowsMax);
    assert.ok(count === length || rows.rowCount === rowsMax, `${count} of ${length} bytes`);
    at += count;
    if (rows.rowCount !== rowsMax) continue;
    stops.push(at);
    rows.begin(form);
  }
  return stops;
}

for (const form of ['csv', 'lines'] as const)
  test(`rows of ${form} end where a walk byte by byte says that they do`, (t) => {
    t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const rows = new RowEnds();
    for (let round = 0; round < 400; round++) {
      const rare = random() ** 3;
      const bytes = ['\n', '\r', '\r\n', '"', '""', ' ', '\t', '\n\n'];
      const pick = () => bytes[Math.floor(random() * bytes.length)] ?? '';
      const words = Array.from({ length: Math.floor(random() * 300) }, () =>
        random() < rare ? pick() : 'abc,é'.slice(0, 1 + Math.floor(random() * 5)),
      );
      const text = Buffer.from(words.join('')).toString('latin1');
      const sizesMax = 1 + Math.floor(random() * 60);
      const rowsMax = 1 + Math.floor(random() * 9);

      const stops = passed(rows, form, text, { rowsMax, sizes: () => 1 + Math.floor(random() * sizesMax) });

      const { ends, isWithin } = naiveEnds(text, form);
      const wanted = ends.filter((_, at) => (at + 1) % rowsMax === 0);
      assert.deepEqual(stops, wanted, JSON.stringify(text));
      assert.equal(rows.rowCount, ends.length % rowsMax);
      assert.equal(rows.isWithin, isWithin, JSON.stringify(text));
    }
  });
