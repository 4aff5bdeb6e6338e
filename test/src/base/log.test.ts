import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLogger, type LogFields, type LogLevel } from '../../../src/base/log.ts';

function logged(level: LogLevel, log: (logger: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  log(createLogger('front', level, (line) => lines.push(line)));
  return lines;
}

function only(message: string, fields?: LogFields): Record<string, unknown> {
  const [line = ''] = logged('debug', (logger) => logger.debug(message, fields));
  return JSON.parse(line);
}

describe('a logger', () => {
  it('writes one JSON object a line: level, time, thread, fields, message', () => {
    const [line = '', ...others] = logged('info', (logger) =>
      logger.error('it broke\nhere', { requestId: 'a-1', status: 500, none: undefined, nobody: null }),
    );

    assert.deepEqual(others, []);
    assert.match(
      line,
      /^\{"level":"error","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","thread":"front",/,
    );
    assert.equal(line.indexOf('\n'), line.length - 1);
    const { time, ...rest } = JSON.parse(line);
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000);
    assert.deepEqual(rest, {
      level: 'error',
      thread: 'front',
      requestId: 'a-1',
      status: 500,
      nobody: null,
      message: 'it broke\nhere',
    });
  });

  it('keeps to its level', () => {
    const all = (level: LogLevel) =>
      logged(level, (logger) => {
        logger.error('one');
        logger.info('two');
        logger.debug('three');
      }).length;

    assert.deepEqual([all('error'), all('info'), all('debug')], [1, 2, 3]);
  });

  it('takes out fields that are named like secrets', () => {
    const fields = {
      authorization: 'a',
      'x-api-key': 'b',
      password: 'c',
      token: 'd',
      key: 'e',
      secret: 'f',
      email: 'g',
    };

    const line = only('asked', { ...fields, keyId: 7 });

    for (const name of Object.keys(fields)) assert.equal(line[name], '[redacted]', name);
    assert.equal(line.keyId, 7);
  });

  it('takes out what looks like a secret, wherever it stands, and leaves the line JSON', () => {
    const secrets = [
      `tb_${'A1b2C3d4E5'.repeat(3)}abcdef`,
      `tbo_${'A1b2C3d4E5'.repeat(4)}`,
      'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLWl0',
      'sk-proj-0123456789abcdefghij',
      'dXNlcjpwYXNzd29yZA==',
      'user%40mail:p4ssw0rd',
      '0123456789abcdef0123456789abcdef',
    ];
    const [key, access, jwt, provider, basic, userinfo, link] = secrets;
    const error = [
      `Error: "${key}" ${access} (${jwt})`,
      `refused ${provider}: Authorization: Basic ${basic}", X: Bearer ${jwt}\\`,
      `smtps://${userinfo}@mail.example:465 https://tide.example/verify?token=${link}&next=/`,
    ].join(' <- ');

    const line = only(`failed for ${key}`, { error });

    const text = JSON.stringify(line);
    for (const secret of secrets) assert.ok(!text.includes(secret), secret);
    assert.match(String(line.error), /smtps:\/\/\[redacted\]@mail\.example:465/);
    assert.match(String(line.error), /token=\[redacted\]&next=\//);
    assert.match(String(line.error), /Bearer \[redacted\]\\/);
  });

  it('leaves everything else as it is', () => {
    const error = 'S3: GET http://127.0.0.1:9000/b/log/0001?list-type=2 tb_AbCdEfGh a:b@c key=1 sk-1';

    assert.equal(only('asked', { error }).error, error);
  });
});
