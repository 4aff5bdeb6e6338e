import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { clusterMutations } from './cluster-mutations.ts';
import { linkMutations } from './link-mutations.ts';
import { buildFolder, catchMutation, editsOf, mutateText } from './mutate.ts';
import { mutations } from './mutations.ts';
import { peerMutations } from './peer-mutations.ts';

/** Noticed within a few seeds; all of them: `npm run prove -- mutations`. */
const quick = [
  'acknowledge before the PUT',
  'a log is called sealed without a seal',
  'the last slot of a sealed log is not replayed',
  'a batch is applied in two steps',
];
const seeds = 20;

test('every mutation still finds its text, once', () => {
  for (const mutation of [...mutations, ...linkMutations, ...clusterMutations, ...peerMutations])
    for (const edit of editsOf(mutation)) {
      const text = readFileSync(join(buildFolder, edit.file), 'utf8');
      assert.notEqual(mutateText(text, mutation.name, edit), text);
    }
});

for (const name of quick) {
  test(`the simulation notices: ${name}`, async () => {
    const mutation = mutations.find((known) => known.name === name);
    assert.ok(mutation !== undefined, name);
    const { violation } = await catchMutation(mutation, seeds);
    assert.ok(violation !== null, `${name}: ${mutation.why}`);
  });
}
