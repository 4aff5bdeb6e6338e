import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import SwaggerParser from '@apidevtools/swagger-parser';
import { buildOpenApi } from '../../protocol/openapi.ts';
import { operationList } from '../../protocol/operations.ts';

/** Tests run in the project's folder; the golden file is not copied by the compiler. */
const goldenPath = 'test/golden/openapi.json';
const updateGolden = '`npm run build && UPDATE_GOLDEN=1 node dist/test/run.js openapi tidy` writes it anew';

const built = (): string => `${JSON.stringify(buildOpenApi('https://tidebase.example'), null, 2)}\n`;

test('openapi: the document is valid OpenAPI 3.1', async () => {
  await SwaggerParser.validate(JSON.parse(built()));
});

test('openapi: the document is the golden one', async () => {
  const document = built();
  if (process.env.UPDATE_GOLDEN === '1') await writeFile(goldenPath, document);

  const golden = await readFile(goldenPath, 'utf8');

  const isGolden = document === golden;
  assert.ok(isGolden, `${goldenPath} is another document: ${updateGolden}, then read what git diff says`);
});

test('openapi: it lists what is built, once for each method, and nothing else', () => {
  const { paths } = JSON.parse(built()) as { paths: Record<string, Record<string, { operationId: string }>> };

  const listed = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const expected = operationList
    .filter((operation) => operation.built)
    .flatMap((operation) => operation.methods.map((method) => `${method} ${operation.path}`));
  const ids = Object.values(paths).flatMap((item) => Object.values(item).map((each) => each.operationId));
  assert.deepEqual(listed.toSorted(), expected.toSorted());
  assert.equal(new Set(ids).size, ids.length);
});

test('openapi: schemas are plain: no $id, no $schema, every reference leads somewhere', () => {
  const text = built();
  const { components } = JSON.parse(text) as { components: Record<string, Record<string, unknown>> };

  assert.doesNotMatch(text, /"\$(id|schema|defs)"/);
  for (const [, kind, name] of text.matchAll(/"\$ref": "#\/components\/(\w+)\/([\w-]+)"/g)) {
    assert.ok(Object.hasOwn(components[kind ?? ''] ?? {}, name ?? ''), `${kind}/${name}`);
  }
});
