import assert from 'node:assert/strict';
import { test } from 'node:test';
import { noSuchNamespace } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';

test('a missing namespace is named, and no more of it is told than a name can have', () => {
  const longest = 'x'.repeat(limits.namespaceNameCharactersMax);

  assert.equal(noSuchNamespace('notes').message, 'there is no namespace named "notes"');
  assert.equal(noSuchNamespace(longest).message, `there is no namespace named "${longest}"`);
  assert.equal(noSuchNamespace(`${longest}y`).message, `there is no namespace named "${longest}…"`);
});
