/** The contract of src/front/http-types.ts, point by point, over real sockets, for whichever engine serves. */
import assert from 'node:assert/strict';
import { request as nodeRequest } from 'node:http';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../../protocol/errors.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/log.ts';
import { type HttpEngine, listenHttp } from '../../src/front/http.ts';
import { errorAnswer } from '../../src/front/http-guards.ts';
import {
  ClientGone,
  type HttpExchange,
  type HttpHandler,
  type HttpListener,
  type HttpListenOptions,
} from '../../src/front/http-types.ts';
import { loadUws } from '../../src/front/http-uws-load.ts';
import { eventually } from '../support/eventually.ts';
import { connectRaw, type RawAnswer, type RawConnection } from '../support/raw-http.ts';

interface Bench {
  readonly listener: HttpListener;
  /** `METHOD path` of each request that reached the handler. */
  readonly seen: string[];
  /** `ID STATUS` of each answer that the door gave itself. */
  readonly ownAnswers: string[];
  connect(): Promise<RawConnection>;
  /** A new connection, the bytes, and the one answer. */
  exchange(bytes: string, timeoutMs?: number): Promise<RawAnswer | undefined>;
}

/** What must end ends at once; a machine that runs everything beside it takes longer. */
const closeMsMax = 20_000;
const bodyLimitBytes = 1000;

/** Answers with what it saw of the request, body included, or with the error that reading the body gave. */
const echo: HttpHandler = (exchange) => {
  exchange.readBody(bodyLimitBytes).then(
    (body) => exchange.respond(ok(Buffer.from(body).toString('latin1'))),
    (error) =>
      exchange.respond(errorAnswer(error instanceof ApiError ? error : new ApiError('internal', ''), 'r-0')),
  );
};

function ok(body: string | Uint8Array) {
  return { status: 200, headers: [['content-type', 'text/plain']] as const, body };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const post = (headers: string, body = '', path = '/') =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`;
const hidden = get('/smuggled');

/** Both spellings of a body of `bytes` bytes. */
const bodies = {
  declared: (bytes: number) => post(`Content-Length: ${bytes}\r\n`, 'x'.repeat(bytes)),
  chunked: (bytes: number) =>
    post('Transfer-Encoding: chunked\r\n', `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n0\r\n\r\n`),
};

/** Heads that two servers might read differently. */
const malformed: Record<string, string> = {
  'a length and chunks': post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  'chunks and a length': post('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
  'two lengths, the first shorter': post('Content-Length: 0\r\nContent-Length: 5\r\n', 'hello'),
  'two lengths, the second shorter': post('Content-Length: 5\r\nContent-Length: 0\r\n', 'hello'),
  'two equal lengths': post('Content-Length: 5\r\nContent-Length: 5\r\n', 'hello'),
  xchunked: post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
  'chunked, identity': post('Transfer-Encoding: chunked, identity\r\n', '0\r\n\r\n'),
  'identity, chunked': post('Transfer-Encoding: identity, chunked\r\n', '0\r\n\r\n'),
  'two codings': post('Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  'an empty coding': post('Transfer-Encoding:\r\n'),
  'an empty coding and a length': post('Transfer-Encoding:\r\nContent-Length: 5\r\n', 'hello'),
  'a length of +5': post('Content-Length: +5\r\n', 'hello'),
  'a length of -5': post('Content-Length: -5\r\n', 'hello'),
  'a length of 5 5': post('Content-Length: 5 5\r\n', 'hello'),
  'a length of 5, 5': post('Content-Length: 5, 5\r\n', 'hello'),
  'a length of 0x5': post('Content-Length: 0x5\r\n', 'hello'),
  'a length of twenty digits': post('Content-Length: 00000000000000000005\r\n', 'hello'),
  'a length past 2^64': post('Content-Length: 18446744073709551621\r\n', 'hello'),
  'an empty length': post('Content-Length:\r\n', 'hello'),
  'a folded length': post('Content-Length:\r\n 5\r\n', 'hello'),
  'a folded coding': post('Transfer-Encoding:\r\n chunked\r\n', '0\r\n\r\n'),
  'a space before the colon of a length': post('Content-Length : 5\r\n', 'hello'),
  'a space before the colon of a coding': post('Transfer-Encoding : chunked\r\n', '0\r\n\r\n'),
  'bare line feeds': 'POST / HTTP/1.1\nHost: a\nContent-Length: 5\n\nhello',
  'one bare line feed': post('X: a\nContent-Length: 5\r\n', 'hello'),
  'a bare carriage return': post('X: a\rContent-Length: 5\r\n', 'hello'),
  'NUL in a value': post('X: a\0b\r\nContent-Length: 5\r\n', 'hello'),
  'NUL in a name': post('X\0: a\r\nContent-Length: 5\r\n', 'hello'),
  'no Host': 'GET / HTTP/1.1\r\nX: a\r\n\r\n',
  'two Hosts': 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
};

/** Chunks that a strict reader refuses: what follows them must never be taken for a request. */
const malformedChunks: Record<string, string> = {
  'a size of 0x3': '0x3\r\nabc\r\n0\r\n\r\n',
  'a negative size': '-3\r\nabc\r\n0\r\n\r\n',
  'no size': '\r\nabc\r\n0\r\n\r\n',
  'a size past 2^64': 'FFFFFFFFFFFFFFFF3\r\nabc\r\n0\r\n\r\n',
  'bare line feeds': '3\nabc\n0\n\n',
  'a line feed in an extension': '3;a\nb\r\nabc\r\n0\r\n\r\n',
  'two bytes in the place of the line end': '3\r\nabcXX0\r\n\r\n',
};

/** Skipped with the reason where the engine does not load on this machine. */
export function httpSuite(engine: HttpEngine): void {
  const loaded = loadUws();
  const skip = engine === 'uws' && !('uws' in loaded) ? loaded.reason : false;

  async function withServer(
    options: Partial<HttpListenOptions>,
    run: (bench: Bench) => Promise<void>,
  ): Promise<void> {
    const seen: string[] = [];
    const ownAnswers: string[] = [];
    let requests = 0;
    const handler = options.handler ?? echo;
    const listener = await listenHttp(
      {
        host: '127.0.0.1',
        port: 0,
        bodyDeadlineMs: 5_000,
        handlerDeadlineMs: 5_000,
        writeDeadlineMs: 5_000,
        nextRequestId: () => `r-${++requests}`,
        onOwnAnswer: ({ requestId, status }) => ownAnswers.push(`${requestId} ${status}`),
        ...options,
        engine,
        handler(exchange) {
          seen.push(`${exchange.method} ${exchange.path}`);
          handler(exchange);
        },
      },
      silentLogger,
      systemClock,
    );
    const open: RawConnection[] = [];
    const connect = async () => {
      const connection = await connectRaw(listener.port);
      open.push(connection);
      return connection;
    };
    const exchange = async (bytes: string, timeoutMs?: number) => {
      const connection = await connect();
      connection.send(bytes);
      return (await connection.waitForAnswers(1, timeoutMs))[0];
    };
    try {
      await run({ listener, seen, ownAnswers, connect, exchange });
    } finally {
      for (const connection of open) connection.destroy();
      await listener.close();
    }
  }

  const codeOf = (answer: RawAnswer | undefined): unknown => JSON.parse(answer?.body.toString() ?? '{}').code;

  describe(`HTTP by ${engine}`, { concurrency: true, skip }, () => {
    test('gives method, path, query and headers as sent, also after an await', async () => {
      const handler = async (exchange: HttpExchange) => {
        await sleep(5);
        const { method, path, query, remoteAddress } = exchange;
        const headers = ['x-one', 'x-two', 'x-none', 'host'].map((name) => exchange.header(name) ?? null);
        exchange.respond(ok(JSON.stringify({ method, path, query, remoteAddress, headers })));
      };
      await withServer({ handler }, async ({ exchange }) => {
        const answer = await exchange(
          'PATCH /a%20b/%C3%A9//c?d=%31&e=?f HTTP/1.1\r\nhOsT: a\r\nX-One: 1 \r\nX-TWO: a\r\nx-two:  b\xc3\xa9c \r\n\r\n',
        );

        assert.deepEqual(JSON.parse(answer?.body.toString() ?? ''), {
          method: 'PATCH',
          path: '/a%20b/%C3%A9//c',
          query: 'd=%31&e=?f',
          remoteAddress: '127.0.0.1',
          headers: ['1', 'a, béc', null, 'a'],
        });
      });
    });

    test('sends status, headers and body, and does not name the server', async () => {
      const handler: HttpHandler = (exchange) =>
        exchange.respond({
          status: 418,
          headers: [
            ['x-a', '1'],
            ['X-B', 'two; b="c"'],
          ],
          body: 'té',
        });
      await withServer({ handler }, async ({ exchange }) => {
        const answer = await exchange(get('/'));

        assert.equal(answer?.status, 418);
        assert.equal(answer.headers.get('x-a'), '1');
        assert.equal(answer.headers.get('x-b'), 'two; b="c"');
        assert.equal(answer.body.toString(), 'té');
        assert.ok(answer.headers.has('date'));
        assert.ok(!answer.headers.has('server') && !answer.headers.has('uwebsockets'));
      });
    });

    test('answers HEAD with the length of the body and without the body', async () => {
      await withServer({ handler: (exchange) => exchange.respond(ok('hello')) }, async ({ connect }) => {
        const connection = await connect();
        connection.send(`HEAD / HTTP/1.1\r\nHost: a\r\n\r\n`);
        await connection.waitForAnswers(1, 5_000, [true]);
        connection.send(get('/'));

        const answers = await connection.waitForAnswers(2, 5_000, [true]);

        assert.equal(answers[0]?.headers.get('content-length'), '5');
        assert.equal(answers[1]?.body.toString(), 'hello');
      });
    });

    test('answers 204 and 304 without body or length, and an empty 200 with length 0', async () => {
      const handler: HttpHandler = (exchange) =>
        exchange.respond({ status: Number(exchange.path.slice(1)), headers: [], body: '' });
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        for (const [at, status] of [204, 304, 200].entries()) {
          connection.send(get(`/${status}`));
          await connection.waitForAnswers(at + 1);
        }

        const lengths = connection
          .answers()
          .map(({ status, headers }) => [status, headers.get('content-length')]);

        assert.deepEqual(lengths, [
          [204, undefined],
          [304, undefined],
          [200, '0'],
        ]);
      });
    });

    test('serves a thousand requests in turn on one connection', async () => {
      await withServer({}, async ({ connect, seen }) => {
        const connection = await connect();
        for (let at = 1; at <= 1000; at += 1) {
          connection.send(at % 2 === 0 ? get(`/${at}`) : post('Content-Length: 3\r\n', 'abc', `/${at}`));
          if (at % 100 === 0) await connection.waitForAnswers(at);
          else await once(connection);
        }

        assert.equal(connection.answers().length, 1000);
        assert.equal(seen.at(-1), 'GET /1000');
      });
    });

    test('answers pipelined requests in order', async () => {
      await withServer(
        { handler: (exchange) => exchange.respond(ok(exchange.path)) },
        async ({ connect }) => {
          const connection = await connect();
          const paths = Array.from({ length: 20 }, (_, at) => `/${at}`);
          connection.send(paths.map(get).join(''));

          const answers = await connection.waitForAnswers(20);

          assert.deepEqual(
            answers.map(({ body }) => body.toString()),
            paths,
          );
        },
      );
    });

    test('never mixes up pipelined requests whose answers take time', async () => {
      const handler: HttpHandler = (exchange) => {
        setTimeout(() => exchange.respond(ok(exchange.path)), exchange.path === '/0' ? 60 : 5);
      };
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        connection.send(get('/0') + get('/1'));

        const answers = await connection.waitForAnswers(2);

        const bodies = answers.map(({ body }) => body.toString());
        assert.deepEqual(bodies, ['/0', '/1'].slice(0, bodies.length));
        assert.ok(bodies.length === 2 || connection.closed);
      });
    });

    test('refuses to write a header that breaks the line, and answers what comes instead', async () => {
      const handler: HttpHandler = (exchange) => {
        const evil = { status: 200, headers: [['x', 'a\r\nset-cookie: b']] as const, body: '' };
        assert.throws(() => exchange.respond(evil), { name: 'AssertionError' });
        exchange.respond(ok('fine'));
      };
      await withServer({ handler }, async ({ exchange }) => {
        assert.equal((await exchange(get('/')))?.body.toString(), 'fine');
      });
    });

    test('answers 500 where the handler throws', async () => {
      const handler = () => {
        throw new Error('secret');
      };
      await withServer({ handler }, async ({ exchange }) => {
        const answer = await exchange(get('/'));

        assert.equal(answer?.status, 500);
        assert.equal(codeOf(answer), 'internal');
        assert.ok(!answer.body.includes('secret'));
      });
    });

    for (const [spelling, bodyOf] of Object.entries(bodies)) {
      test(`reads a ${spelling} body of exactly the limit and refuses one byte more with 413 and the end`, async () => {
        await withServer({}, async ({ exchange, connect }) => {
          const fitting = await exchange(bodyOf(bodyLimitBytes));
          const connection = await connect();
          connection.send(bodyOf(bodyLimitBytes + 1));
          const [refused] = await connection.waitForAnswers(1);

          assert.equal(fitting?.body.length, bodyLimitBytes);
          assert.equal(refused?.status, 413);
          assert.equal(codeOf(refused), 'too_large');
          assert.equal(refused.headers.get('connection'), 'close');
          assert.ok(await connection.waitForClose(closeMsMax));
        });
      });
    }

    test('refuses a declared length before any of the body came', async () => {
      await withServer({}, async ({ exchange }) => {
        assert.equal((await exchange(post('Content-Length: 900000000\r\n')))?.status, 413);
      });
    });

    test('a client that sends its whole body first still reads the 413', async () => {
      await withServer({}, async ({ listener }) => {
        const status = await new Promise((resolve, reject) => {
          const request = nodeRequest({ port: listener.port, method: 'POST', agent: false }, (response) => {
            response.resume();
            resolve(response.statusCode);
          });
          request.on('error', reject);
          request.end(Buffer.alloc(20_000_000));
        });

        assert.equal(status, 413);
      });
    });

    test('a body in many pieces arrives whole, as an ArrayBuffer that can be moved', async () => {
      const whole = Buffer.from(Array.from({ length: 700_001 }, (_, at) => at % 251));
      const handler: HttpHandler = (exchange) => {
        void exchange.readBody(1_000_000).then((body) => {
          const moved = structuredClone(body, { transfer: [body] });
          exchange.respond(ok(String(body.byteLength === 0 && whole.equals(Buffer.from(moved)))));
        });
      };
      await withServer({ handler }, async ({ connect }) => {
        for (const spelling of ['declared', 'chunked'] as const) {
          const connection = await connect();
          connection.send(
            post(
              spelling === 'declared'
                ? `Content-Length: ${whole.length}\r\n`
                : 'Transfer-Encoding: CHUNKED\r\n',
            ),
          );
          for (let at = 0; at < whole.length; at += 90_001) {
            const piece = whole.subarray(at, at + 90_001);
            if (spelling === 'chunked') connection.send(`${piece.length.toString(16)}\r\n`);
            connection.send(piece);
            if (spelling === 'chunked') connection.send('\r\n');
            await sleep(2);
          }
          if (spelling === 'chunked') connection.send('0\r\n\r\n');

          const [answer] = await connection.waitForAnswers(1);

          assert.equal(answer?.body.toString(), 'true', spelling);
        }
      });
    });

    test('a body is handed over piece by piece, and its client is held up while it is not taken', async () => {
      const whole = Buffer.from(Array.from({ length: 3_000_001 }, (_, at) => at % 251));
      const handler: HttpHandler = (exchange) => {
        const pieces: Uint8Array[] = [];
        const limit = exchange.path === '/small' ? 1_000 : 4_000_000;
        const reading = exchange.streamBody(limit, (piece) => {
          pieces.push(Uint8Array.from(piece));
          return exchange.path === '/broken'
            ? Promise.reject(new ApiError('unavailable', 'no room'))
            : pieces.length % 3 === 0
              ? sleep(5)
              : undefined;
        });
        reading.then(
          (bytes) =>
            exchange.respond(ok(String(bytes === whole.length && whole.equals(Buffer.concat(pieces))))),
          (error) => exchange.respond(errorAnswer(error, 'r-0')),
        );
      };
      await withServer({ handler }, async ({ connect }) => {
        for (const [path, expected] of [
          ['/', 200],
          ['/small', 413],
          ['/broken', 503],
        ] as const) {
          for (const spelling of ['declared', 'chunked'] as const) {
            const connection = await connect();
            const length =
              spelling === 'declared'
                ? `Content-Length: ${whole.length}\r\n`
                : 'Transfer-Encoding: chunked\r\n';
            connection.send(post(length, '', path));
            for (let at = 0; at < whole.length; at += 250_000) {
              const piece = whole.subarray(at, at + 250_000);
              if (spelling === 'chunked') connection.send(`${piece.length.toString(16)}\r\n`);
              connection.send(piece);
              if (spelling === 'chunked') connection.send('\r\n');
            }
            if (spelling === 'chunked') connection.send('0\r\n\r\n');
            const [answer] = await connection.waitForAnswers(1);
            assert.equal(answer?.status, expected, `${path} ${spelling}`);
            if (expected === 200) assert.equal(answer?.body.toString(), 'true', spelling);
          }
        }
      });
    });

    test('a body is kept until the handler asks for it, and its connection goes on', async () => {
      const handler: HttpHandler = (exchange) => {
        setTimeout(() => echo(exchange), 50);
      };
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        connection.send(post('Content-Length: 3\r\n', 'abc'));
        await connection.waitForAnswers(1);
        connection.send(post('Content-Length: 10\r\n', 'abcde'));
        await sleep(10);
        connection.send('fghij');
        await connection.waitForAnswers(2);
        connection.send(post('Content-Length: 4\r\n'));
        await sleep(100);
        connection.send('late');

        const answers = await connection.waitForAnswers(3);

        assert.deepEqual(
          answers.map(({ body }) => body.toString()),
          ['abc', 'abcdefghij', 'late'],
        );
      });
    });

    test('an absent body reads as empty', async () => {
      await withServer({}, async ({ exchange }) => {
        assert.equal((await exchange(get('/')))?.body.length, 0);
        assert.equal((await exchange(post('Content-Length: 0\r\n')))?.body.length, 0);
      });
    });

    test('a client that expects 100 gets it before it sends the body', async () => {
      await withServer({}, async ({ connect }) => {
        const connection = await connect();
        connection.send(post('Content-Length: 3\r\nExpect: 100-continue\r\n'));
        await once(connection);
        const first = connection.received().toString('latin1');
        connection.send('abc');

        const [answer] = await connection.waitForAnswers(1);

        assert.match(first, /^HTTP\/1\.1 100 Continue\r\n/);
        assert.equal(answer?.body.toString(), 'abc');
      });
    });

    test('an answer with an unread body ends the connection', async () => {
      const handler: HttpHandler = (exchange) => exchange.respond({ status: 401, headers: [], body: '{}' });
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        connection.send(post('Content-Length: 100000\r\n', 'abc'));

        const [answer] = await connection.waitForAnswers(1);

        assert.equal(answer?.status, 401);
        assert.equal(answer.headers.get('connection'), 'close');
        assert.ok(await connection.waitForClose(closeMsMax));
      });
    });

    test('what comes of a body after its request was refused is not kept', async () => {
      const handler: HttpHandler = (exchange) => exchange.respond(ok('no'));
      const piece = Buffer.alloc(1 << 20);
      const pieces = 8;
      await withServer({ handler }, async ({ listener, connect }) => {
        const connection = await connect();
        connection.send(post(`Content-Length: ${(pieces + 1) * piece.byteLength}\r\n`));
        const [answer] = await connection.waitForAnswers(1);
        assert.equal(answer?.status, 200);
        for (let sent = 0; sent < pieces; sent++) {
          connection.send(piece);
          assert.equal(listener.collectedBytes, 0);
          await sleep(5);
        }
        await eventually(() => connection.socket.writableLength === 0, 'the body leaves');
        assert.equal(listener.collectedBytes, 0);
      });
    });

    test('an answer can ask for the end of its connection, whatever its size, status and method', async () => {
      const big = Buffer.alloc(3_000_000);
      const handler: HttpHandler = (exchange) => {
        const status = exchange.path === '/none' ? 204 : 200;
        exchange.respond({ status, headers: [], body: exchange.path === '/big' ? big : '', close: true });
      };
      await withServer({ handler }, async ({ connect }) => {
        const cases = [
          [get('/big'), 200, big.length],
          [get('/empty'), 200, 0],
          [get('/none'), 204, 0],
          [get('/big').replace('GET', 'HEAD'), 200, 0],
        ] as const;
        for (const [request, status, bytes] of cases) {
          const connection = await connect();
          connection.send(request);
          const closed = await connection.waitForClose(closeMsMax);
          const [answer] = connection.answers([request.startsWith('HEAD')]);

          assert.ok(closed, request);
          assert.equal(answer?.status, status, request);
          assert.equal(answer.body.length, bytes, request);
          assert.equal(answer.headers.get('connection'), 'close', request);
        }
      });
    });

    test('a body that stalls is answered 408, and the connection ends', async () => {
      await withServer({ bodyDeadlineMs: 300 }, async ({ connect }) => {
        for (const head of ['Content-Length: 10\r\n', 'Transfer-Encoding: chunked\r\n']) {
          const connection = await connect();
          connection.send(post(head, '3\r\nab'));

          const [answer] = await connection.waitForAnswers(1);

          assert.equal(answer?.status, 408, head);
          assert.equal(codeOf(answer), 'bad_request', head);
          assert.ok(await connection.waitForClose(closeMsMax), head);
        }
      });
    });

    test('a slow body that is still within its deadline is read, however few its bytes', async () => {
      await withServer({ bodyDeadlineMs: 30_000 }, async ({ connect }) => {
        const connection = await connect();
        connection.send(post('Content-Length: 25\r\n'));
        for (let at = 0; at < 25; at += 1) {
          connection.send('x');
          await sleep(500);
        }

        assert.equal((await connection.waitForAnswers(1))[0]?.body.length, 25);
      });
    });

    test('a client that leaves in mid-body rejects the reading with ClientGone', async () => {
      const handler = (resolve: (error: unknown) => void) => (exchange: HttpExchange) => {
        exchange.readBody(1000).catch((error) => resolve({ error, aborted: exchange.aborted }));
      };
      const outcome = new Promise<unknown>((resolve) => {
        void withServer({ handler: handler(resolve) }, async ({ connect }) => {
          const connection = await connect();
          connection.send(post('Content-Length: 10\r\n', 'abc'));
          await sleep(50);
          connection.destroy();
          await sleep(300);
        });
      });

      const { error, aborted } = (await outcome) as { error: unknown; aborted: boolean };

      assert.ok(error instanceof ClientGone);
      assert.equal(aborted, true);
    });

    test('a client that leaves before the answer is told to the handler once, and answering then is harmless', async () => {
      let runs = 0;
      let late: HttpExchange | undefined;
      const handler: HttpHandler = (exchange) => {
        late = exchange;
        exchange.onAbort(() => {
          runs += 1;
        });
      };
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        connection.send(get('/x?y').replace('\r\n\r\n', '\r\nX-A: b\r\n\r\n'));
        await until(() => late !== undefined);
        connection.destroy();
        await until(() => late?.aborted === true);
        late?.respond(ok('x'));
        let afterwards = 0;
        late?.onAbort(() => {
          afterwards += 1;
        });

        assert.equal(late?.aborted, true);
        assert.equal(`${late.method} ${late.path} ${late.query} ${late.header('x-a')}`, 'GET /x y b');
        assert.deepEqual([runs, afterwards], [1, 1]);
        await assert.rejects(late.readBody(10), ClientGone);
      });
    });

    test('an answered exchange is never told of an abort, and is answered only once', async () => {
      let runs = 0;
      const handler: HttpHandler = (exchange) => {
        exchange.onAbort(() => {
          runs += 1;
        });
        exchange.respond(ok('x'));
        assert.throws(() => exchange.respond(ok('y')), { name: 'AssertionError' });
      };
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        connection.send(get('/'));
        const answers = await connection.waitForAnswers(1);
        connection.destroy();
        await sleep(50);

        assert.equal(answers[0]?.body.toString(), 'x');
        assert.equal(runs, 0);
      });
    });

    test('a handler that never answers is answered for with 503, its work is cancelled, its late answer ignored', async () => {
      let cancelled = 0;
      const handler: HttpHandler = (exchange) => {
        if (exchange.method === 'POST') exchange.mayTakeEffect();
        exchange.onAbort(() => {
          cancelled += 1;
          exchange.respond(ok('late'));
        });
      };
      await withServer({ handler, handlerDeadlineMs: 200 }, async ({ exchange, connect }) => {
        const answer = await exchange(get('/'));
        const connection = await connect();
        connection.send(post('Content-Length: 100\r\n', 'abc'));
        const [withBody] = await connection.waitForAnswers(1);

        assert.deepEqual([answer?.status, codeOf(answer)], [503, 'unavailable']);
        assert.deepEqual([withBody?.status, codeOf(withBody)], [503, 'write_unknown']);
        assert.equal(cancelled, 2);
      });
    });

    test('names each request itself, and so what the door answers in place of the handler, which it tells of', async () => {
      const handler: HttpHandler = (exchange) => {
        if (exchange.path === '/throws') throw new Error('broken');
        if (exchange.path === '/silent') return;
        exchange.respond(ok(exchange.requestId));
      };
      await withServer({ handler, handlerDeadlineMs: 200 }, async ({ exchange, ownAnswers }) => {
        const asked = await exchange('GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\n');
        const own = [
          await exchange('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'),
          await exchange(get('/throws')),
          await exchange(get('/silent')),
        ];

        assert.match(asked?.body.toString() ?? '', /^r-\d+$/);
        const told = own.map((answer) => `${answer?.headers.get('x-request-id')} ${answer?.status}`);
        assert.deepEqual(told, ownAnswers);
        assert.deepEqual(
          own.map((answer) => answer?.status),
          [400, 500, 503],
        );
        for (const answer of own) assert.equal(answer?.headers.get('x-content-type-options'), 'nosniff');
        assert.equal(new Set([...ownAnswers, `${asked?.body} 200`]).size, 4);
      });
    });

    test('a big answer reaches a normal reader whole', async () => {
      const big = Buffer.from(Array.from({ length: 8_000_000 }, (_, at) => (at * 7) % 253));
      const handler: HttpHandler = (exchange) => {
        if (exchange.path === '/later') setTimeout(() => exchange.respond(ok(big)), 5);
        else exchange.respond(ok(big));
      };
      await withServer({ handler }, async ({ connect }) => {
        const connection = await connect();
        connection.send(get('/now'));
        await connection.waitForAnswers(1);
        connection.send(get('/later'));

        const answers = await connection.waitForAnswers(2);

        assert.deepEqual(
          answers.map(({ body }) => body.equals(big)),
          [true, true],
        );
      });
    });

    test('a client that does not read its answer in time is cut off', async () => {
      let cutOff = () => {};
      const isCutOff = new Promise<void>((resolve) => {
        cutOff = resolve;
      });
      const handler: HttpHandler = (exchange) =>
        exchange.respond({ ...ok(Buffer.alloc(30_000_000)), sent: { release: cutOff } });
      await withServer({ handler, writeDeadlineMs: 1_000 }, async ({ connect }) => {
        const connection = await connect();
        connection.socket.pause();
        connection.send(get('/'));
        // Nothing is read before: a machine that is busy looks at its deadlines late.
        await isCutOff;
        connection.socket.resume();
        await connection.waitForClose(closeMsMax);

        assert.ok(connection.closed);
        assert.ok(connection.received().length < 30_000_000);
      });
    });

    test('what an answer holds is let go once, when its last byte has left', async () => {
      const released: string[] = [];
      const handler: HttpHandler = (exchange) => {
        const bytes = exchange.path === '/small' ? 100 : 30_000_000;
        const sent = { release: () => released.push(exchange.path) };
        exchange.respond({ ...ok(Buffer.alloc(bytes)), sent });
      };
      await withServer({ handler }, async ({ connect }) => {
        const [reader, unread] = [await connect(), await connect()];
        reader.send(get('/small'));
        await reader.waitForAnswers(1);
        await until(() => released.length > 0);
        assert.deepEqual(released, ['/small']);

        unread.socket.pause();
        unread.send(get('/unread'));
        reader.socket.pause();
        reader.send(get('/read'));
        await sleep(300);
        assert.deepEqual(released, ['/small']);
        reader.socket.resume();
        await reader.waitForAnswers(2);
        await until(() => released.length > 1);
        assert.deepEqual(released, ['/small', '/read']);

        unread.socket.destroy();
        await until(() => released.length > 2);
        assert.deepEqual(released, ['/small', '/read', '/unread']);
      });
    });

    test('who is slow can be ended: its body fails with 408, its answer is cut off', async () => {
      const exchanges: HttpExchange[] = [];
      const handler: HttpHandler = (exchange) => {
        exchanges.push(exchange);
        if (exchange.path === '/answer') return exchange.respond(ok(Buffer.alloc(30_000_000)));
        exchange.readBody(1_000_000).then(
          () => exchange.respond(ok('')),
          (error: ApiError) => exchange.respond(ok(`${error.status} ${error.code}`)),
        );
      };
      await withServer({ handler }, async ({ connect }) => {
        const [sender, reader] = [await connect(), await connect()];
        sender.send('POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\nbegin');
        await until(() => exchanges.length === 1);
        reader.socket.pause();
        reader.send(get('/answer'));
        await until(() => exchanges.length === 2);
        assert.deepEqual(
          exchanges.map((exchange) => [exchange.path, exchange.secondsLeft()]),
          [
            ['/body', 0],
            ['/answer', 0],
          ],
          'nothing is known yet',
        );
        await sleep(1_500);
        for (const exchange of exchanges) exchange.secondsLeft();
        await sleep(1_500);
        for (const exchange of exchanges) assert.ok(exchange.secondsLeft() > 60, exchange.path);

        for (const exchange of exchanges) exchange.evict();

        const [answer] = await sender.waitForAnswers(1);
        assert.equal(answer?.body.toString(), '408 bad_request');
        reader.socket.resume();
        await reader.waitForClose(closeMsMax);
        assert.ok(reader.received().length < 30_000_000);
      });
    });

    for (const [name, bytes] of Object.entries(malformed)) {
      test(`a head with ${name} is refused and what follows it is not handled`, async () => {
        await withServer({}, async ({ connect, seen }) => {
          const together = await connect();
          together.send(bytes + hidden);
          const apart = await connect();
          apart.send(bytes);
          await sleep(50);
          apart.send(hidden);

          const answers = [await together.waitForAnswers(1, 600), await apart.waitForAnswers(1, 600)].flat();

          assert.deepEqual(seen, []);
          assert.deepEqual(
            answers.filter(({ status }) => status !== 400),
            [],
          );
        });
      });
    }

    for (const name of [
      'two equal lengths',
      'xchunked',
      'two codings',
      'two Hosts',
      'two lengths, the second shorter',
    ]) {
      test(`a head with ${name} is answered 400 in the shape of our errors, and the connection ends`, async () => {
        await withServer({}, async ({ connect }) => {
          const connection = await connect();
          connection.send(malformed[name] ?? '');

          const [answer] = await connection.waitForAnswers(1);

          assert.equal(answer?.status, 400);
          assert.equal(codeOf(answer), 'bad_request');
          assert.equal(answer.headers.get('content-type'), 'application/json');
          assert.ok(await connection.waitForClose(closeMsMax));
        });
      });
    }

    for (const [name, bytes] of Object.entries(malformedChunks)) {
      test(`what follows a chunked body with ${name} is not handled`, async () => {
        await withServer({}, async ({ connect, seen }) => {
          const head = post('Transfer-Encoding: chunked\r\n');
          const together = await connect();
          together.send(head + bytes + hidden);
          const apart = await connect();
          apart.send(head + bytes);
          await sleep(50);
          apart.send(hidden);
          await sleep(200);

          assert.ok(!seen.includes('GET /smuggled'), seen.join());
        });
      });
    }

    test('a request behind a refused one on the same connection is not handled', async () => {
      await withServer({}, async ({ connect, seen }) => {
        const connection = await connect();
        connection.send(bodies.declared(bodyLimitBytes + 1) + hidden);
        await connection.waitForAnswers(1, 600);

        assert.deepEqual(
          seen.filter((request) => request.startsWith('GET')),
          [],
        );
      });
    });

    test('a long path and a head of many bytes are read where they fit, and refused or cut where not', async () => {
      await withServer(
        { handler: (exchange) => exchange.respond(ok(String(exchange.path.length))) },
        async ({ exchange, connect }) => {
          const fitting = await exchange(get(`/${'a'.repeat(4_999)}`));
          const nearlyFull = await exchange(get(`/${'a'.repeat(59_999)}`));
          const tooLong = await connect();
          tooLong.send(get(`/${'a'.repeat(1_000_000)}`));
          const answers = await tooLong.waitForAnswers(1);

          assert.equal(fitting?.body.toString(), '5000');
          assert.equal(nearlyFull?.body.toString(), '60000');
          assert.ok(answers.length === 0 ? tooLong.closed : answers[0]?.status === 431);
        },
      );
    });

    for (const target of ['http://x/y', '*', 'y']) {
      test(`the target ${target} is answered 400 or cut, never handled`, async () => {
        await withServer({}, async ({ connect, seen }) => {
          const connection = await connect();
          connection.send(`OPTIONS ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
          const [answer] = await connection.waitForAnswers(1, 12_900);

          assert.ok(answer === undefined ? connection.closed : answer.status === 400);
          assert.deepEqual(seen, []);
        });
      });
    }

    test('a head that arrives drop by drop is cut', async () => {
      await withServer({}, async ({ connect, seen }) => {
        const connection = await connect();
        connection.send('GET / HTTP/1.1\r\nHost: a\r\nX: ');
        const drip = setInterval(() => connection.send('a'), 500);
        const closed = await connection.waitForClose(13_400);
        clearInterval(drip);

        assert.ok(closed);
        assert.deepEqual(seen, []);
      });
    });

    test('after stopListening new connections are refused and open ones end with their next answer', async () => {
      const held: (() => void)[] = [];
      const handler: HttpHandler = (exchange) => {
        const answer = () => exchange.respond(ok(exchange.path));
        if (exchange.path === '/busy') held.push(answer);
        else answer();
      };
      await withServer({ handler }, async ({ connect, listener, seen }) => {
        const idle = await connect();
        idle.send(get('/warm'));
        await idle.waitForAnswers(1);
        const busy = await connect();
        busy.send(get('/busy'));
        await until(() => seen.includes('GET /busy'));
        listener.stopListening();
        idle.send(get('/last'));
        const [, last] = await idle.waitForAnswers(2);
        for (const answer of held) answer();
        const [during] = await busy.waitForAnswers(1);

        await assert.rejects(connectRaw(listener.port));
        assert.equal(last?.body.toString(), '/last');
        assert.equal(last.headers.get('connection'), 'close');
        assert.equal(during?.headers.get('connection'), 'close');
        assert.ok(await idle.waitForClose(closeMsMax));
      });
    });

    test('close ends every connection, and may be called twice', async () => {
      let gone = 0;
      const handler: HttpHandler = (exchange) =>
        exchange.onAbort(() => {
          gone += 1;
        });
      await withServer({ handler }, async ({ connect, listener, seen }) => {
        const idle = await connect();
        const busy = await connect();
        busy.send(get('/'));
        await until(() => seen.length === 1);
        await listener.close();

        assert.ok(await idle.waitForClose(10_000));
        assert.ok(await busy.waitForClose(10_000));
        await until(() => gone > 0);
        await sleep(50);
        assert.equal(gone, 1);
      });
    });

    test('says which engine serves', async () => {
      await withServer({}, async ({ listener }) => {
        const names = engine === 'node' ? ['node:http'] : ['uWebSockets.js', 'uws-packaged'];
        assert.ok(names.includes(listener.engine));
      });
    });

    test('a port that is taken rejects', async () => {
      await withServer({}, async ({ listener }) => {
        await assert.rejects(withServer({ port: listener.port }, async () => undefined));
      });
    });
  });
}

/** The next bytes from the server. */
function once({ socket }: RawConnection): Promise<void> {
  return new Promise((resolve) => socket.once('data', () => resolve()));
}

/** However slow the machine is; what never comes is what the test then finds missing. */
async function until(isSo: () => boolean): Promise<void> {
  const waitedMsMax = 60_000;
  for (let waitedMs = 0; waitedMs < waitedMsMax && !isSo(); waitedMs += 10) await sleep(10);
}
