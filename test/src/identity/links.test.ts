import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { linkWorks, makeLink, personOfToken, withLink } from '../../../src/identity/links.ts';
import type { Person, PersonLink } from '../../../src/identity/person-record.ts';

const personId = 2 ** 48 - 1;
const start = 1_700_000_000_000;
const make = (kind: PersonLink['kind'], nowMs = start) => makeLink(systemRandom, { kind, personId, nowMs });
const holding = (...links: readonly PersonLink[]) => ({ links }) as unknown as Person;

test('a token leads to its person, whatever the length of the id, and says nothing of what is stored', () => {
  for (const id of [1, 255, 2 ** 32, personId]) {
    const { token, link } = makeLink(systemRandom, { kind: 'verify', personId: id, nowMs: start });

    assert.equal(personOfToken(token), id);
    assert.match(token, /^[0-9a-f]{52}$/);
    assert.ok(!JSON.stringify(link).includes(token));
  }
});

test('what has not the form of a token leads to nobody', () => {
  const { token } = make('verify');

  for (const wrong of [
    '',
    'x',
    token.slice(1),
    `${token}0`,
    token.toUpperCase(),
    `${token}\n`,
    ` ${token}`,
  ]) {
    assert.equal(personOfToken(wrong), null, JSON.stringify(wrong));
  }
});

test('a link works for its kind and its time only: seven days and an hour', () => {
  const verify = make('verify');
  const reset = make('reset');
  const person = holding(verify.link, reset.link);
  const works = (kind: PersonLink['kind'], token: string, afterMs: number) =>
    linkWorks(person, { kind, token, nowMs: start + afterMs });
  const day = 24 * 3_600_000;

  assert.ok(works('verify', verify.token, 0));
  assert.ok(works('verify', verify.token, 7 * day - 1));
  assert.ok(!works('verify', verify.token, 7 * day));
  assert.ok(works('reset', reset.token, 3_600_000 - 1));
  assert.ok(!works('reset', reset.token, 3_600_000));
  assert.ok(!works('reset', verify.token, 0));
  assert.ok(!works('verify', reset.token, 0));
  assert.ok(!works('verify', make('verify').token, 0));
});

test('a person keeps the newest links of each kind, and none that has expired', () => {
  let person = holding(make('verify', start - limits.verifyLinkMs).link, make('reset').link);
  const made = Array.from({ length: limits.linksPerPersonMax + 2 }, (_, i) => make('verify', start + i));
  for (const { link } of made) person = holding(...withLink(person, link, start + 100));

  const kinds = person.links.map(({ kind }) => kind);
  assert.deepEqual(kinds, ['reset', ...Array.from({ length: limits.linksPerPersonMax }, () => 'verify')]);
  const working = made.map(({ token }) => linkWorks(person, { kind: 'verify', token, nowMs: start + 100 }));
  assert.deepEqual(working, [false, false, ...Array.from({ length: limits.linksPerPersonMax }, () => true)]);
});
