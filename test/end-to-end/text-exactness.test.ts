import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTexts, storeTexts } from '../../load-tests/check-texts.ts';
import { readFiles, textFilesBelow } from '../../load-tests/corpus.ts';
import { startMeasured } from '../../load-tests/measured-server.ts';
import { textCases } from '../../load-tests/text-cases.ts';
import { Chance } from '../simulation/chance.ts';
import { manyLanguages } from '../support/many-languages.ts';

/** Small: real code and prose of node_modules, and many scripts. Tens of megabytes are `npm run text-exactness`. */
const bytesMax = 2_000_000;
const fileEvery = 23;
const wanted = { literals: 60, regexes: 69 };

test('searches and counts answer what RE2 finds in every document', async (t) => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const texts = new Map([...someFiles(), ...manyLanguages(150)]);
  const stored = await storeTexts(await startMeasured({ env: { TIDEBASE_COMMIT_MS: '20' } }), 'texts', texts);
  t.after(() => stored.server.process.stop());
  const cases = textCases([...texts.values()], new Chance(seed, 0), wanted);

  const { differences, byKind } = await checkTexts(stored, cases, new Chance(seed, 1));

  assert.deepEqual(differences, [], `seed ${seed}`);
  const totals = [...byKind.values()];
  assert.equal(
    totals.reduce((sum, each) => sum + each.cases, 0),
    cases.length,
  );
  assert.ok(totals.filter(({ matches }) => matches > 0).length > totals.length / 2, `seed ${seed}`);
});

test('the comparison notices another order, another text and another match', async (t) => {
  const texts = manyLanguages(40);
  const stored = await storeTexts(await startMeasured({ env: { TIDEBASE_COMMIT_MS: '20' } }), 'texts', texts);
  t.after(() => stored.server.process.stop());
  const asked = { query: 'kelvin: \u212A', isRegex: false, kind: 'literal' };
  const differences = async (expected: ReadonlyMap<string, Buffer>) => {
    const check = await checkTexts({ ...stored, texts: expected }, [asked], new Chance(1, 1));
    return check.differences.join('\n');
  };
  const written = [...stored.texts];
  const changed = (from: string, to: string) =>
    new Map(written.map(([id, text]) => [id, Buffer.from(text.toString().replaceAll(from, to))]));

  assert.equal(await differences(stored.texts), '');
  assert.match(await differences(new Map(written.toReversed())), /order of writing[\s\S]*newest hits/);
  assert.match(await differences(changed('Kelvin', 'Kevin')), /counts \d+, not 0/);
  assert.match(await differences(changed('Kelvin', ' Kelvin')), /"start":/);
  assert.match(await differences(changed('Kelvin', '\nKelvin')), /"lineNumber":/);
  assert.match(await differences(changed('k K', 'k X')), /its text is not[\s\S]*the line is/);
});

function someFiles(): ReadonlyMap<string, Buffer> {
  const { texts } = readFiles(
    'node_modules',
    textFilesBelow('node_modules').filter((_, i) => i % fileEvery === 0),
  );
  let left = bytesMax;
  return new Map(
    [...texts].filter(([, text]) => {
      left -= text.length;
      return left >= 0;
    }),
  );
}
