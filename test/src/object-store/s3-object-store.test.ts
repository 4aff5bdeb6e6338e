import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { StoreError } from '../../../src/object-store/object-store.ts';
import { S3ObjectStore } from '../../../src/object-store/s3-object-store.ts';

/** What a server may do that Ceph can't be made to: each test scripts the answers, the store and its SDK are real. */
describe('the S3 store, by what the server answers', () => {
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    request.resume();
    answer(request, response);
  });
  let store: S3ObjectStore;

  const storeAt = (port: number, clock: Clock = systemClock) =>
    new S3ObjectStore(
      {
        endpoint: `http://127.0.0.1:${port}`,
        region: 'us-east-1',
        bucket: 'test',
        accessKeyId: 'key',
        secretAccessKey: 'secret',
        forcePathStyle: true,
      },
      clock,
    );

  before(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    store = storeAt((server.address() as AddressInfo).port);
  });
  beforeEach(() => {
    requests = 0;
  });
  after(async () => {
    await store.close();
    server.closeAllConnections();
    server.close();
  });

  const create = () => store.putIfAbsent('a/b', [Buffer.from('x')]);
  const update = () => store.putIfMatch('a/b', [Buffer.from('x')], '"etag"');
  const fails = async (call: Promise<unknown>, outcome: string, reason: string, cause: RegExp) => {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof StoreError && error.cause instanceof Error);
      assert.deepEqual([error.outcome, error.reason], [outcome, reason]);
      assert.match(error.cause.message, cause);
      return true;
    });
  };

  it('sends a conditional write once, whatever the answer', async () => {
    const cases: readonly (readonly [number, string, string, string])[] = [
      [409, 'ConditionalRequestConflict', 'not-applied', 'conflict'],
      [503, 'SlowDown', 'unknown', 'throttled'],
      [429, 'TooManyRequests', 'unknown', 'throttled'],
      [500, 'InternalError', 'unknown', 'failed'],
      [502, 'BadGateway', 'unknown', 'failed'],
      [403, 'AccessDenied', 'not-applied', 'failed'],
      [404, 'NoSuchBucket', 'not-applied', 'failed'],
    ];
    for (const [status, code, outcome, reason] of cases) {
      answer = (_, response) => fail(response, status, code);
      for (const put of [create, update]) {
        requests = 0;
        await fails(put(), outcome, reason, new RegExp(`${status} ${code} for bucket test`));
        assert.equal(requests, 1);
      }
    }
  });

  it('takes a failed condition as a refusal, and a missing object for an update too', async () => {
    answer = (_, response) => fail(response, 412, 'PreconditionFailed');
    assert.deepEqual([await create(), await update()], [{ kind: 'refused' }, { kind: 'refused' }]);
    answer = (_, response) => fail(response, 404, 'NoSuchKey');
    assert.deepEqual(await update(), { kind: 'refused' });
  });

  it('does not know whether a write was stored whose answer never came', async () => {
    answer = () => {};
    const hung = store.putIfAbsent('a/b', [Buffer.from('x')], { timeoutMs: 50 });
    await fails(hung, 'unknown', 'timeout', /no answer within 50 ms/);
    answer = (request) => request.socket.destroy();
    await fails(create(), 'unknown', 'failed', /no answer from S3/);
    assert.equal(requests, 2);
  });

  it('promises that nothing was stored where no connection came about', async () => {
    const nowhere = storeAt(1);
    const call = nowhere.putIfAbsent('a/b', [Buffer.from('x')]);
    await fails(call, 'not-applied', 'failed', /ECONNREFUSED/);
    await nowhere.close();
  });

  it('repeats reads and deletes, three times in all', async () => {
    answer = (_, response) => fail(response, 500, 'InternalError');
    await fails(store.get('a/b'), 'not-applied', 'failed', /500 InternalError/);
    assert.equal(requests, 3);
    requests = 0;
    await fails(store.delete('a/b'), 'unknown', 'failed', /500 InternalError/);
    assert.equal(requests, 3);
    answer = (_, response) => {
      if (requests === 5) response.writeHead(200, { etag: '"e"', 'content-length': 5 }).end('hello');
      else fail(response, 503, 'SlowDown');
    };
    assert.equal((await store.get('a/b'))?.size, 5);
  });

  it('reads a body again that broke off, and never returns half of one', async () => {
    const cut = (response: ServerResponse) => {
      response.writeHead(200, { etag: '"e"', 'content-length': 5 });
      response.write('hel', () => response.destroy());
    };
    answer = (_, response) => {
      if (requests === 1) cut(response);
      else response.writeHead(200, { etag: '"e"', 'content-length': 5 }).end('hello');
    };
    assert.equal(Buffer.from((await store.get('a/b'))?.bytes ?? []).toString(), 'hello');
    answer = (_, response) => cut(response);
    await assert.rejects(store.get('a/b'), StoreError);
  });

  it('does not take the 404 of a missing bucket, or of something in between, for a missing object', async () => {
    answer = (_, response) => fail(response, 404, 'NoSuchBucket');
    await fails(store.get('a/b'), 'not-applied', 'failed', /404 NoSuchBucket/);
    answer = (_, response) =>
      response.writeHead(404, { 'content-type': 'text/html' }).end('<html>not here</html>');
    await assert.rejects(store.get('a/b'), StoreError);
    answer = (_, response) => fail(response, 404, 'NoSuchKey');
    assert.equal(await store.get('a/b'), null);
  });

  it('cuts the range itself where the server ignores it', async () => {
    answer = (_, response) =>
      response.writeHead(200, { etag: '"e"', 'content-length': 10 }).end('0123456789');
    const object = await store.get('a/b', { range: { offset: 3, length: 4 } });
    assert.deepEqual([Buffer.from(object?.bytes ?? []).toString(), object?.size], ['3456', 10]);
  });

  describe('streams', () => {
    const partBytes = 8 * 1024 * 1024;
    const bodyBytes = 2 * partBytes + 100;
    let impatient: S3ObjectStore;
    /** What was asked for, in order: method and query without values, parts with their number. */
    let asked: string[] = [];

    before(() => {
      const clock = { ...systemClock, sleep: () => Promise.resolve() };
      impatient = storeAt((server.address() as AddressInfo).port, clock);
    });
    after(() => impatient.close());

    async function* body(bytes = bodyBytes) {
      yield new Uint8Array(bytes);
    }

    /** A bucket that takes everything, but where a test says otherwise; true: it has answered. */
    function script(special: (name: string, response: ServerResponse) => boolean): void {
      asked = [];
      answer = (request, response) => {
        const name = nameOf(request);
        asked.push(name);
        request.on('end', () => {
          if (special(name, response)) return;
          if (name === 'HEAD') response.writeHead(404).end();
          else if (name === 'begin')
            xml(
              response,
              '<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>',
            );
          else if (name === 'complete')
            xml(
              response,
              '<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>',
            );
          else if (name === 'abort') response.writeHead(204).end();
          else response.writeHead(200, { etag: `"${name}"` }).end();
        });
      };
    }

    it('sends a small one as one conditional PUT, and a large one in parts', async () => {
      script(() => false);
      const small = await impatient.putStream('a/b', body(10));
      assert.deepEqual([small, asked], [{ kind: 'stored', etag: '"PUT"', size: 10 }, ['PUT']]);
      script(() => false);
      const large = await impatient.putStream('a/b', body());
      assert.deepEqual(large, { kind: 'stored', etag: '"whole"', size: bodyBytes });
      assert.deepEqual(asked.toSorted(), ['HEAD', 'begin', 'complete', 'part 1', 'part 2', 'part 3']);
    });

    it('sends a part again that failed', async () => {
      let failures = 3;
      script((name, response) => {
        if (name !== 'part 2' || failures-- <= 0) return false;
        fail(response, 503, 'SlowDown');
        return true;
      });
      assert.equal((await impatient.putStream('a/b', body())).kind, 'stored');
      assert.equal(asked.filter((name) => name === 'part 2').length, 4);
    });

    it('aborts the upload where a part fails for good', async () => {
      script((name, response) => {
        if (name === 'part 2') fail(response, 500, 'InternalError');
        return name === 'part 2';
      });
      await fails(impatient.putStream('a/b', body()), 'not-applied', 'failed', /500 InternalError/);
      assert.equal(asked.at(-1), 'abort');
      assert.ok(!asked.includes('complete'));
    });

    it('reads no more of the chunks after a part failed for good', async () => {
      script((name, response) => {
        if (name === 'part 1') fail(response, 500, 'InternalError');
        return name === 'part 1';
      });
      let taken = 0;
      let ended = false;
      async function* endless() {
        try {
          for (; ; taken++) yield new Uint8Array(partBytes);
        } finally {
          ended = true;
        }
      }
      await fails(impatient.putStream('a/b', endless()), 'not-applied', 'failed', /500 InternalError/);
      assert.ok(ended && taken < 100, `${taken} parts`);
    });

    it('looks whether a completion got through whose answers were lost', async () => {
      script((name, response) => {
        if (name === 'complete') response.destroy();
        else if (name === 'HEAD' && asked.includes('complete'))
          response.writeHead(200, { etag: '"seen"', 'content-length': bodyBytes }).end();
        else return false;
        return true;
      });
      const put = await impatient.putStream('a/b', body());
      assert.deepEqual(put, { kind: 'stored', etag: '"seen"', size: bodyBytes });
    });

    it('takes an upload that is gone after a lost completion for complete where the object is there', async () => {
      let completions = 0;
      script((name, response) => {
        if (name === 'complete' && ++completions === 1) response.destroy();
        else if (name === 'complete') fail(response, 404, 'NoSuchUpload');
        else if (name === 'HEAD' && completions > 0)
          response.writeHead(200, { etag: '"seen"', 'content-length': bodyBytes }).end();
        else return false;
        return true;
      });
      assert.equal((await impatient.putStream('a/b', body())).kind, 'stored');
      assert.equal(completions, 2);
    });

    it('does not know of a completion that was never answered, and leaves the upload to collection', async () => {
      script((name, response) => {
        if (name === 'complete') response.destroy();
        return name === 'complete';
      });
      await fails(impatient.putStream('a/b', body()), 'unknown', 'failed', /no answer/);
      assert.ok(!asked.includes('abort'));
      script((name, response) => {
        if (name === 'PUT') response.destroy();
        return name === 'PUT';
      });
      await fails(impatient.putStream('a/b', body(10)), 'unknown', 'failed', /no answer/);
    });

    it('knows its own object when a repeated PUT is refused', async () => {
      let puts = 0;
      script((name, response) => {
        if (name === 'PUT' && ++puts === 1) response.destroy();
        else if (name === 'PUT') fail(response, 412, 'PreconditionFailed');
        else if (name === 'HEAD') response.writeHead(200, { etag: '"seen"', 'content-length': 10 }).end();
        else return false;
        return true;
      });
      const put = await impatient.putStream('a/b', body(10));
      assert.deepEqual(put, { kind: 'stored', etag: '"seen"', size: 10 });
    });
  });

  it('ends calls in flight when it is closed', async () => {
    answer = () => {};
    const closing = storeAt((server.address() as AddressInfo).port);
    const calls = [closing.putIfAbsent('a/b', []), closing.get('a/b')] as const;
    await closing.close();
    await fails(calls[0], 'unknown', 'failed', /closed/);
    await fails(calls[1], 'not-applied', 'failed', /closed/);
  });
});

function fail(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>in words</Message></Error>`);
}

function xml(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/xml' }).end(`<?xml version="1.0"?>${body}`);
}

function nameOf({ method, url = '' }: IncomingMessage): string {
  const query = new URL(url, 'http://x').searchParams;
  if (query.has('partNumber')) return `part ${query.get('partNumber')}`;
  if (query.has('uploads')) return 'begin';
  if (query.has('uploadId')) return method === 'DELETE' ? 'abort' : 'complete';
  return method ?? '';
}
