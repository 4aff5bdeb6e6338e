import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseTableDefinition } from '../../../actors/import/table-definition.ts';
import { hitColumns, hitsDefinition } from '../../../load-tests/corpus/web-hits.ts';

const kinds = (definition: string) =>
  parseTableDefinition(definition)
    .map(({ name, kind }) => `${name}:${kind}`)
    .join(' ');

const cases: readonly (readonly [string, string])[] = [
  ['a INT, b TEXT', 'a:int b:text'],
  ['(a BIGINT NOT NULL DEFAULT (1 + 2), b VARCHAR(255))', 'a:int b:text'],
  [
    'create table if not exists "my table" ("a ""b""" DATE, `c` DATETIME, [d e] REAL);',
    'a "b":date c:time d e:float',
  ],
  [
    'CREATE TABLE x (k INT PRIMARY KEY, v DECIMAL(10, 2) CHECK (v > 0), UNIQUE (v), CONSTRAINT c FOREIGN KEY (k) REFERENCES y (k))',
    'k:int v:float',
  ],
  [
    "CREATE OR REPLACE TABLE x (id UInt64, s LowCardinality(Nullable(String)), d Date, t DateTime('UTC')) ENGINE = MergeTree ORDER BY (id, d)",
    'id:int s:text d:date t:time',
  ],
  [
    'a DOUBLE PRECISION, t TIMESTAMP WITHOUT TIME ZONE, c CHARACTER VARYING(9), b BOOLEAN -- the last',
    'a:float t:time c:text b:bool',
  ],
  ['key TEXT, "primary" INT, /* no */ index INT', 'key:text primary:int index:int'],
];
for (const [definition, expected] of cases) test(definition, () => assert.equal(kinds(definition), expected));

test('the table of the public web-analytics benchmark', () => {
  const columns = parseTableDefinition(hitsDefinition);
  assert.equal(columns.length, 105);
  assert.deepEqual(
    columns.map(({ name }) => name),
    hitColumns.map(({ name }) => name),
  );
});
