import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { parseImportArguments } from '../../../src/cli/import-arguments.ts';
import { sendFile } from '../../../src/cli/send-file.ts';
import { temporaryFolder } from '../../support/server-process.ts';

const env = { TIDEBASE_API_KEY: 'key' };

test('the name of a file says what it holds, and what it is packed with', () => {
  const known = (file: string) => {
    const asked = parseImportArguments([file, '--namespace', 'n'], env);
    return [asked?.format, asked?.packing];
  };
  assert.deepEqual(['a.csv', 'a.csv.gz', 'a.b.JSONL.ZST', 'a.parquet', 'a.ndjson.gz'].map(known), [
    ['csv', null],
    ['csv', 'gzip'],
    ['ndjson', 'zstd'],
    ['parquet', null],
    ['ndjson', 'gzip'],
  ]);
  assert.throws(() => known('a.gz'), /what format has a/u);
});

test('a packed file is sent as it is, with what it is packed with and what was asked for', async () => {
  let seen: { url: string; headers: IncomingHttpHeaders; body: Buffer } | null = null;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    seen = { url: request.url ?? '', headers: request.headers, body: Buffer.concat(parts) };
    response.end('{"rows":1,"took_ms":1}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const file = join(temporaryFolder(), 'rows.csv.gz');
  writeFileSync(file, gzipSync('a,v\n1,"[1]"\n'));
  const to = ['--namespace', 'n', '--url', `http://127.0.0.1:${port}`];

  const code = await sendFile([file, ...to, '--vector', 'v', '--skip', 'a'], env);

  server.close();
  assert.equal(code, 0);
  const { url, headers, body } = seen ?? assert.fail();
  assert.equal(url, '/v1/namespaces/n/import?format=csv&vector=v&skip=a');
  assert.equal(headers['content-encoding'], 'gzip');
  assert.equal(gunzipSync(body).toString(), 'a,v\n1,"[1]"\n');
});
