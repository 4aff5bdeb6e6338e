/** The pages as a program gets them: their headers, and that all they need is there and from here. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

const pagePaths = ['/', '/console', '/verify', '/reset'];
/** Small enough to come at once on any line. */
const packedBytesMax = 60_000;

/** node:http and no fetch: what is asked for and what comes is as it is on the wire. */
function ask(
  { url }: ServerProcess,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const asked = request(url + path, { method, headers }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('end', () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts) }),
      );
    });
    asked.on('error', reject).end();
  });
}

for (const engine of ['auto', 'node'] as const) {
  describe(`the pages over HTTP, ${engine}`, () => {
    let server: ServerProcess;
    before(async () => {
      server = await startServer({ folder: temporaryFolder(), engine });
    });
    after(() => server.stop());

    const assetsOf = async (): Promise<string[]> => {
      const { body } = await ask(server, '/');
      return [...body.toString().matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(
        ([, path]) => path ?? '',
      );
    };

    it('are one document under a strict policy', async () => {
      const documents = await Promise.all(pagePaths.map((path) => ask(server, `${path}?token=abc`)));

      for (const { status, headers, body } of documents) {
        assert.equal(status, 200);
        assert.equal(headers['content-type'], 'text/html; charset=utf-8');
        assert.equal(headers['referrer-policy'], 'no-referrer');
        assert.equal(headers['x-content-type-options'], 'nosniff');
        assert.equal(headers['cache-control'], 'no-cache');
        assert.match(String(headers['permissions-policy']), /geolocation=\(\)/);
        const policy = new Set(String(headers['content-security-policy']).split('; '));
        for (const rule of [
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "connect-src 'self'",
          "form-action 'none'",
          "base-uri 'none'",
          "frame-ancestors 'none'",
          "require-trusted-types-for 'script'",
        ]) {
          assert.ok(policy.has(rule), rule);
        }
        assert.doesNotMatch([...policy].join(), /unsafe|\*/);
        assert.doesNotMatch(body.toString(), /abc|<style|style=|<script>|\son\w+=/);
      }
    });

    it('name every file that they need, which never changes under its path', async () => {
      const paths = await assetsOf();
      assert.ok(paths.length > 20);
      const types: Record<string, string> = {
        js: 'text/javascript; charset=utf-8',
        css: 'text/css; charset=utf-8',
        svg: 'image/svg+xml',
      };
      let packed = 0;
      for (const path of paths) {
        const plain = await ask(server, path);
        assert.equal(plain.status, 200, path);
        assert.equal(plain.headers['content-type'], types[path.split('.').at(-1) ?? ''], path);
        assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable', path);
        const small = await ask(server, path, { headers: { 'accept-encoding': 'br, gzip;q=0.8' } });
        assert.equal(small.headers['content-encoding'], 'gzip');
        assert.deepEqual(gunzipSync(small.body), plain.body);
        packed += small.body.byteLength;
        const text = plain.body.toString();
        assert.doesNotMatch(
          text.replaceAll('http://www.w3.org/2000/svg', ''),
          /https?:\/\/\w/,
          `${path} names a host`,
        );
        for (const [, imported = ''] of text.matchAll(/^import .* from '([^']+)'/gm)) {
          const target = new URL(imported, server.url + path).pathname;
          assert.ok(paths.includes(target), `${path} imports ${imported}`);
        }
      }
      assert.ok(packed < packedBytesMax, `${packed} bytes`);
    });

    it('are answered 304 to whoever has them, and without a body to HEAD', async () => {
      for (const path of ['/console', ...(await assetsOf()).slice(0, 2)]) {
        const first = await ask(server, path);
        const again = await ask(server, path, { headers: { 'if-none-match': String(first.headers.etag) } });
        assert.deepEqual([again.status, again.body.byteLength], [304, 0]);
        assert.equal(again.headers.etag, first.headers.etag);
        const other = await ask(server, path, {
          headers: { 'if-none-match': String(first.headers.etag), 'accept-encoding': 'gzip' },
        });
        assert.equal(other.status, 200, 'another encoding is another representation');
        const refused = await ask(server, path, { headers: { 'accept-encoding': 'gzip;q=0, *' } });
        assert.equal(refused.headers['content-encoding'], undefined);
        const head = await ask(server, path, { method: 'HEAD' });
        assert.deepEqual([head.status, head.body.byteLength], [200, 0]);
        assert.equal(head.headers['content-length'], String(first.body.byteLength));
      }
    });

    it('leave other paths and methods what they were', async () => {
      for (const path of [
        '/nothing',
        '/console/',
        '/console/assets/',
        '/console/assets/0/main.js',
        '//',
        '/Console',
      ]) {
        const { status, headers, body } = await ask(server, path);
        assert.deepEqual([status, headers['content-type']], [404, 'application/json'], path);
        assert.equal(JSON.parse(body.toString()).code, 'not_found');
      }
      const posted = await ask(server, '/console', { method: 'POST' });
      assert.deepEqual([posted.status, posted.headers.allow], [405, 'GET, HEAD']);
      assert.equal(JSON.parse(posted.body.toString()).code, 'bad_request');
    });
  });
}
