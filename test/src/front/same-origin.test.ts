import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originRefusal } from '../../../src/front/same-origin.ts';

const server = { host: 'tide.example', baseUrl: 'https://search.example.com/base' };

test('pages of the base URL and of the host that is asked may, with or without its usual port', () => {
  const allowed: readonly (readonly [origin: string | undefined, host: string | undefined])[] = [
    [undefined, 'anything'],
    ['https://search.example.com', '10.0.0.5:8080'],
    ['https://search.example.com:443', undefined],
    ['https://tide.example', 'tide.example'],
    ['http://tide.example', 'tide.example'],
    ['https://tide.example', 'tide.example:443'],
    ['http://tide.example', 'tide.example:80'],
    ['https://TIDE.example', 'tide.EXAMPLE'],
    ['http://localhost:8080', 'localhost:8080'],
    ['http://[::1]:8080', '[::1]:8080'],
  ];

  for (const [origin, host] of allowed) {
    assert.equal(originRefusal(origin, { ...server, host }), null, `${origin} at ${host}`);
  }
});

test('pages of other origins may not, nor those that hide theirs', () => {
  const refused: readonly (readonly [origin: string, host: string | undefined])[] = [
    ['null', 'tide.example'],
    ['', 'tide.example'],
    ['https://evil.example', 'tide.example'],
    ['https://tide.example.evil.example', 'tide.example'],
    ['https://tide.example:8443', 'tide.example'],
    ['http://search.example.com', '10.0.0.5:8080'],
    ['http://localhost:3000', 'localhost:8080'],
    ['https://tide.example@evil.example', 'tide.example'],
    ['https://tide.example/path', 'tide.example'],
    ['https://tide.example, https://evil.example', 'tide.example'],
    ['chrome-extension://tide.example', 'tide.example'],
    ['file://', 'tide.example'],
    ['https://evil.example', 'a b'],
    ['https://evil.example', undefined],
  ];

  for (const [origin, host] of refused) {
    const refusal = originRefusal(origin, { ...server, host });
    assert.deepEqual([refusal?.status, refusal?.code], [403, 'forbidden'], `${origin} at ${host}`);
  }
});
