import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
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

  const storeAt = (port: number) =>
    new S3ObjectStore(
      {
        endpoint: `http://127.0.0.1:${port}`,
        region: 'us-east-1',
        bucket: 'test',
        accessKeyId: 'key',
        secretAccessKey: 'secret',
        forcePathStyle: true,
      },
      systemClock,
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
