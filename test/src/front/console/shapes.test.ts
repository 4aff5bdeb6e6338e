import assert from 'node:assert/strict';
import { it } from 'node:test';
import type * as account from '../../../../protocol/account.ts';
import type { StoredDocument } from '../../../../protocol/document.ts';
import type { Namespace, NamespaceList } from '../../../../protocol/namespace.ts';
import type { Hit, SearchAnswer } from '../../../../protocol/search.ts';
import type { SqlAnswer } from '../../../../protocol/sql.ts';
import type * as shapes from '../../../../src/front/console/browser/shapes.ts';

/** What the pages read of an answer must be in it, with that type: where it is not, this file does not compile. */
type Holds<Answer extends Shape, Shape> = Answer extends Shape ? true : never;

type Shapes = [
  Holds<account.SignupAnswer, shapes.SignedUp>,
  Holds<account.Me, shapes.Me>,
  Holds<account.ConnectionItem, shapes.Connection>,
  Holds<account.Tenant, shapes.Tenant>,
  Holds<account.KeyItem, shapes.Key>,
  Holds<account.NewKey, shapes.MadeKey>,
  Holds<account.Usage, shapes.Usage>,
  Holds<account.Billing, shapes.Billing>,
  Holds<Namespace, shapes.Namespace>,
  Holds<NamespaceList, shapes.NamespaceList>,
  Holds<Hit, shapes.Hit>,
  Holds<SearchAnswer, shapes.Found>,
  Holds<StoredDocument, shapes.StoredDocument>,
  Holds<SqlAnswer, shapes.SqlAnswer>,
];

it('the shapes that the pages know are those of the interface', () => {
  const held: Shapes = [true, true, true, true, true, true, true, true, true, true, true, true, true, true];

  assert.ok(held.every(Boolean));
});
