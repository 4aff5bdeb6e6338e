import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { buildOpenApi } from '../../protocol/openapi.ts';
import { startServer, temporaryFolder } from '../support/server-process.ts';

const run = promisify(execFile);
const modules = resolve('node_modules');

/**
 * openapi-typescript asks for the compiler as a library, which TypeScript 7 is not any more: inside the generator alone
 * "typescript" means the older one. Everything that it makes is compiled by the compiler of this repository.
 */
const olderCompiler = `import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(
  "export const resolve = (name, context, next) => next(name === 'typescript' ? 'typescript-5' : name, context);"));
`;

const program = `import createClient from 'openapi-fetch';
import type { paths } from './api.js';

const [baseUrl, email] = process.argv.slice(2) as [string, string];
const open = createClient<paths>({ baseUrl });
const made = await open.POST('/v1/signup', { body: { email, name: 'Ada', password: 'correct horse' } });
if (made.data === undefined) throw new Error(made.error.code);
const scope: 'admin' = made.data.scope;
const headers = { 'X-API-Key': made.data.key };
const api = createClient<paths>({ baseUrl, headers });
const at = { params: { path: { name: 'notes' } } } as const;

// Each with the required fields alone.
const space = await api.POST('/v1/namespaces', { body: { name: 'vectors', vector: { dims: 2 } } });
const metric: 'cosine' | 'euclidean' | undefined = space.data?.vector?.metric;
const key = await api.POST('/v1/keys', { body: { name: 'second' } });
const put = await api.POST('/v1/namespaces/{name}/docs', { ...at, body: { docs: [{ id: 'a/b', text: 'High tide' }] } });
const patch = await api.PATCH('/v1/namespaces/{name}/docs', { ...at, body: { docs: [{ id: 'a/b' }] } });
const removed = await api.POST('/v1/namespaces/{name}/delete', { ...at, body: { ids: [] } });
const found = await api.POST('/v1/namespaces/{name}/search', { ...at, body: { q: 'tide' } });
const byQuery = await api.GET('/v1/namespaces/{name}/search', { params: { ...at.params, query: { q: 'tide' } } });
const counted = await api.POST('/v1/namespaces/{name}/count', { ...at, body: {} });
const rows = await api.POST('/v1/namespaces/{name}/sql', { ...at, body: { sql: 'SELECT id FROM docs' } });
const warmed = await api.POST('/v1/namespaces/{name}/warm', { ...at, body: {} });
const missing = await api.GET('/v1/namespaces/{name}', { params: { path: { name: 'absent' } } });

// Answers keep their types.
const hit = found.data?.hits[0];
const line: string | undefined = hit?.line;
const version: number | undefined = put.data?.version;
const temperature: 'warm' | 'local' | 'cold' | undefined = counted.data?.temperature;
const code: string | undefined = missing.error?.code;
// @ts-expect-error: a filter's limit is a number.
await api.POST('/v1/namespaces/{name}/search', { ...at, body: { limit: 'many' } });
// @ts-expect-error: a name is required.
await api.POST('/v1/namespaces', { body: {} });

console.log(JSON.stringify({ scope, metric, key: key.data?.scope, version, patched: patch.data?.written, deleted: removed.data?.deleted,
  line, byQuery: byQuery.data?.hits.length, count: counted.data?.count, rows: rows.data?.rows, warmed: warmed.data?.docs, temperature, code }));
`;

const compilerOptions = {
  target: 'es2022',
  module: 'nodenext',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  types: ['node'],
  skipLibCheck: false,
};

describe('a client that openapi-typescript makes of the description', () => {
  it('compiles with the required fields alone, and works', { timeout: 120_000 }, async () => {
    const folder = temporaryFolder();
    mkdirSync(folder, { recursive: true });
    symlinkSync(modules, join(folder, 'node_modules'));
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    write('package.json', '{"type":"module"}');
    write('api.json', JSON.stringify(buildOpenApi('https://tidebase.example')));
    write('older-compiler.mjs', olderCompiler);
    write('client.ts', program);
    write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['client.ts'] }));

    const generator = join(modules, 'openapi-typescript/bin/cli.js');
    const hook = pathToFileURL(join(folder, 'older-compiler.mjs')).href;
    await run(process.execPath, ['--import', hook, generator, 'api.json', '-o', 'api.d.ts'], { cwd: folder });
    await run(process.execPath, [join(modules, 'typescript/bin/tsc')], { cwd: folder });
    const server = await startServer({ folder: join(folder, 'data') });
    try {
      const { stdout } = await run(process.execPath, ['client.js', server.url, 'generated@example.com'], {
        cwd: folder,
      });

      assert.deepEqual(JSON.parse(stdout), {
        scope: 'admin',
        metric: 'cosine',
        key: 'write',
        version: 1,
        patched: 1,
        deleted: 0,
        line: 'High tide',
        byQuery: 1,
        count: 1,
        rows: [['a/b']],
        warmed: 1,
        temperature: 'warm',
        code: 'not_found',
      });
    } finally {
      await server.stop();
    }
  });
});
