import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { checkTexts, type StoredTexts, storeTexts } from '../../load-tests/check-texts.ts';
import { readFiles, textFilesBelow } from '../../load-tests/corpus.ts';
import { startMeasured } from '../../load-tests/measured-server.ts';
import { textCases } from '../../load-tests/text-cases.ts';
import { Chance } from '../simulation/chance.ts';
import { manyLanguages } from '../support/many-languages.ts';

/** Small: real code and prose of node_modules, and many scripts. Tens of megabytes are `npm run prove -- text-exactness`. */
const bytesMax = 1_500_000;
const fileEvery = 47;
/** Files over this size are left out: for them some patterns are refused, for the time that one call could take (test/actors/text/judge.test.ts). */
const fileBytesMax = 64 * 1024;
const wanted = { literals: 60, regexes: 69 };

describe('searches and counts of a real server', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const given = new Map([...someFiles(), ...manyLanguages(100)]);
  let stored: StoredTexts;
  before(async () => {
    stored = await storeTexts(await startMeasured({ env: { TIDEBASE_COMMIT_MS: '20' } }), 'texts', given);
  });
  after(() => stored.server.process.stop());

  test('answer what RE2 finds in every document', async () => {
    const cases = textCases([...given.values()], new Chance(seed, 0), wanted);

    const { differences, byKind } = await checkTexts(stored, cases, new Chance(seed, 1));

    assert.deepEqual(differences, [], `seed ${seed}`);
    const totals = [...byKind.values()];
    assert.equal(
      totals.reduce((sum, each) => sum + each.cases, 0),
      cases.length,
    );
    assert.ok(totals.filter(({ matches }) => matches > 0).length > totals.length / 2, `seed ${seed}`);
  });

  test('are compared so that another order, another text and another place are noticed', async () => {
    const asked = { query: 'kelvin: \u212A', isRegex: false, kind: 'literal' };
    const differences = async (texts: ReadonlyMap<string, Buffer>) => {
      const check = await checkTexts({ ...stored, texts }, [asked], new Chance(1, 1));
      return check.differences.join('\n');
    };
    const written = [...stored.texts];
    const changed = (from: string, to: string) =>
      new Map(
        written.map(([id, text]) => {
          const isOurs = id.startsWith('language-');
          return [id, isOurs ? Buffer.from(text.toString().replaceAll(from, to)) : text];
        }),
      );

    assert.equal(await differences(stored.texts), '');
    assert.match(await differences(new Map(written.toReversed())), /order of writing[\s\S]*newest hits/);
    assert.match(await differences(changed('Kelvin', 'Kevin')), /counts \d+, not 0/);
    assert.match(await differences(changed('Kelvin', ' Kelvin')), /"start":/);
    assert.match(await differences(changed('Kelvin', '\nKelvin')), /"lineNumber":/);
    assert.match(await differences(changed('k K', 'k X')), /its text is not[\s\S]*the line is/);
  });
});

function someFiles(): ReadonlyMap<string, Buffer> {
  const { texts } = readFiles(
    'node_modules',
    textFilesBelow('node_modules').filter((_, i) => i % fileEvery === 0),
  );
  let left = bytesMax;
  return new Map(
    [...texts].filter(([, text]) => {
      if (text.length > fileBytesMax) return false;
      left -= text.length;
      return left >= 0;
    }),
  );
}
