import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { conditionsIn } from '../../../actors/text/combine-queries.ts';
import { compileMatcher, type Matcher } from '../../../actors/text/regex.ts';
import { planQuery } from '../../../actors/text/regex-plan.ts';
import { randomPattern, randomText } from '../../support/patterns.ts';
import { repositoryRoot } from '../../support/repository.ts';
import { seededRandom } from '../../support/segments.ts';
import { fulfils, showQuery, trigramsOfText } from '../../support/trigram-queries.ts';

const planOf = (pattern: string) => showQuery(planQuery(pattern, true));
const goldenPath = join(repositoryRoot(), 'test/golden/regex-plans.json');

test('patterns have the plans that were once found good', () => {
  const read = () => JSON.parse(readFileSync(goldenPath, 'utf8')) as Record<string, string>;
  const made = Object.fromEntries(Object.keys(read()).map((pattern) => [pattern, planOf(pattern)]));
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(goldenPath, `${JSON.stringify(made, null, 2)}\n`);
  const golden = read();

  assert.ok(Object.keys(golden).length >= 80);
  assert.deepEqual(made, golden);
});

test('a literal has the plan of its characters, whatever they mean in a pattern', () => {
  assert.equal(showQuery(planQuery('a.c', false)), '"a.c"');
  assert.equal(showQuery(planQuery('(?i)', false)), 'AND("(?i", "?i)")');
  assert.equal(showQuery(planQuery('TIDE', false)), planOf('tide'));
  assert.equal(showQuery(planQuery('\u212aey', false)), '"key"');
  assert.equal(showQuery(planQuery('', false)), 'ALL');
});

test('one and two bytes are looked for in trigrams, and a character of three bytes is one', () => {
  assert.deepEqual(planQuery('X', false), { kind: 'part', bytes: [0x78] });
  assert.deepEqual(planQuery('If', false), { kind: 'part', bytes: [0x69, 0x66] });
  assert.deepEqual(planQuery('Ä', false), { kind: 'part', bytes: [0xc3, 0x84] });
  assert.deepEqual(planQuery('潮', false), { kind: 'trigram', trigram: 0xe6bdae });
  assert.equal(planQuery('Äh', false).kind, 'trigram');
});

test('a long literal asks for a few dozen trigrams from all of it', () => {
  const random = seededRandom(5);
  const text = Array.from({ length: 4000 }, () => String.fromCharCode(97 + Math.floor(random() * 26))).join(
    '',
  );

  const plan = planQuery(text, false);

  assert.ok(conditionsIn(plan) >= 30 && conditionsIn(plan) <= 48, `${conditionsIn(plan)}`);
  assert.ok(fulfils(trigramsOfText(Buffer.from(text)), plan));
  assert.equal(fulfils(trigramsOfText(Buffer.from(text.slice(0, 2000))), plan), false);
  assert.equal(fulfils(trigramsOfText(Buffer.from(text.slice(2000))), plan), false);
});

test('patterns as people write them have a condition', () => {
  const patterns = [
    'func \\w+\\(ctx',
    'https?://[^\\s"]+',
    '(?i)todo|fixme',
    '\\berror\\b.*\\btimeout\\b',
    '[Gg]r[öo](ß|ss)e',
    'v[0-9]+\\.[0-9]+\\.[0-9]+-rc',
    '^import .* from',
    '\\d{4}-\\d{2}-\\d{2}T',
    '0x[0-9a-f]{8}',
    'if err != nil \\{',
    '(GET|POST|PUT) /v1/',
    '(?s)begin.*?end',
    '"status": ?(4|5)\\d\\d',
    '\\p{Greek}+ tide',
    '潮汐|海',
    '(foo|bar)?baz',
    'colou?r',
    '(?m)^\\s+return;$',
    '\\x{212a}elvin',
    '(?:harbour|quay)(?:s|side)?',
  ];
  const unplanned = patterns.filter((pattern) => planOf(pattern) === 'ALL');

  assert.deepEqual(unplanned, []);
});

test('patterns that match what everything has are scans, and those that nothing matches find nothing', () => {
  for (const pattern of [
    '',
    '.*',
    '\\w+',
    '[a-z]{5}',
    '^$',
    'a*',
    '(?s).',
    '\\pL',
    '(abc)?',
    'abc|',
    '\\bx?\\b',
  ])
    assert.equal(planOf(pattern), 'ALL', pattern);
  for (const pattern of ['[^\\s\\S]', 'abc[^\\x00-\\x{10ffff}]'])
    assert.equal(planOf(pattern), 'NONE', pattern);
});

test('what is not understood has no condition', () => {
  for (const pattern of ['(', 'abc(?=d)', '(?<=a)bcd', 'abc\\1', 'abc**', 'abc{2000}', '\\x{d800}'])
    assert.equal(planOf(pattern), 'ALL', pattern);
});

test('the largest plans stay small, and the worst patterns are planned', () => {
  const worst = [
    `${'([0-9]:[0-9]|'.repeat(70)}a${')'.repeat(70)}`,
    '[0-9a-f]'.repeat(120),
    '(a|b)'.repeat(200),
    '[ab]{1,3}'.repeat(110),
    '(((((a|b){3}|c){3}x|d){3})?){3}',
    '(?i)[k-s]'.repeat(110),
    `${'('.repeat(500)}abc${')'.repeat(500)}`,
    '('.repeat(1000),
    '[[:'.repeat(333),
    `${'(?:'.repeat(200)}a${')*'.repeat(200)}`,
    '((((((((((abc){9}){9}){9}){9}){9}){9}){9}){9}){9}){9}',
    Array.from(
      { length: 240 },
      (_, at) => `${String.fromCharCode(97 + (at % 26), 97 + ((at / 26) | 0))}x`,
    ).join('|'),
    `[a-p]:${'(ab|cd|[0-9]:[0-9]|ef.*gh)'.repeat(36)}`,
  ];
  for (const pattern of worst) {
    const plan = planQuery(pattern, true);

    assert.ok(conditionsIn(plan) <= 1_000, `${conditionsIn(plan)}: ${pattern.slice(0, 40)}`);
  }
});

/** PLAN_PAIRS=1000000 for a longer run. */
const pairs = Number(process.env.PLAN_PAIRS ?? 5_000);

function matcherOrNull(pattern: string): Matcher | null {
  try {
    return compileMatcher(pattern, true);
  } catch {
    return null;
  }
}

test(`of ${pairs} random patterns and texts, no text that RE2 matches is excluded`, () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  let [matched, excluded, planned] = [0, 0, 0];
  for (let pair = 0; pair < pairs; ) {
    const text = randomText(random);
    const bytes = Buffer.from(text);
    const trigrams = trigramsOfText(bytes);
    for (let i = 0; i < 4; i++) {
      const pattern = randomPattern(random, i === 0 ? randomText(random) : text);
      const matcher = matcherOrNull(pattern);
      if (matcher === null) continue;
      pair++;
      const plan = planQuery(pattern, true);
      const isCandidate = fulfils(trigrams, plan);
      const isMatch = matcher.test(bytes);
      if (isMatch && !isCandidate)
        assert.fail(`seed ${seed}: ${JSON.stringify({ pattern, text })} is excluded by ${showQuery(plan)}`);
      matched += isMatch ? 1 : 0;
      excluded += isCandidate ? 0 : 1;
      planned += plan.kind === 'all' ? 0 : 1;
    }
  }

  // Else the test would prove nothing: enough of both, and plans that say something.
  assert.ok(matched > pairs / 4, `${matched} matched, seed ${seed}`);
  assert.ok(excluded > pairs / 20, `${excluded} excluded, seed ${seed}`);
  assert.ok(planned > pairs / 3, `${planned} planned, seed ${seed}`);
});

test('of random literals, no text that has them is excluded', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  for (let round = 0; round < 5_000; round++) {
    const text = randomText(random);
    const characters = [...text];
    const start = Math.floor(random() * characters.length);
    const part = characters.slice(start, start + 1 + Math.floor(random() * 8)).join('');
    const query = random() < 0.5 ? part.toUpperCase() : part.toLowerCase();
    const bytes = Buffer.from(text);
    if (query === '' || !compileMatcher(query, false).test(bytes)) continue;
    assert.ok(
      fulfils(trigramsOfText(bytes), planQuery(query, false)),
      `seed ${seed}: ${JSON.stringify({ text, query })}`,
    );
  }
});
