import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClientAddresses } from '../../../src/front/client-address.ts';

test('without a setting a proxy on this machine is believed, and nobody else', () => {
  const addresses = new ClientAddresses([]);

  assert.equal(addresses.hasProxies, false);
  assert.equal(addresses.of('192.0.2.1', '198.51.100.1'), '192.0.2.1');
  for (const local of ['127.0.0.1', '127.9.9.9', '::1']) {
    assert.equal(addresses.of(local, undefined), local);
    assert.equal(addresses.of(local, '198.51.100.1'), '198.51.100.1');
    // The right-most one is what the proxy saw; the others are the client's words.
    assert.equal(addresses.of(local, '127.0.0.1, 203.0.113.9, 198.51.100.1'), '198.51.100.1');
    // Two proxies on this machine, one behind the other.
    assert.equal(addresses.of(local, '203.0.113.9, 198.51.100.1, 127.0.0.1'), '198.51.100.1');
    assert.equal(addresses.of(local, 'unknown'), local);
  }
});

test('the client is the right-most address that is not a trusted proxy', () => {
  const addresses = new ClientAddresses(['10.0.0.0/8', '192.0.2.9', '2001:db8::/32']);
  const cases: readonly (readonly [remote: string, forwarded: string | undefined, client: string])[] = [
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '203.0.113.5, 198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '203.0.113.5, 198.51.100.1 , 10.9.9.9,192.0.2.9', '198.51.100.1'],
    ['192.0.2.9', '198.51.100.1:4711', '198.51.100.1'],
    ['2001:db8::5', '[2001:dead::1]:4711', '2001:dead::1'],
    ['2001:db8::5', '2001:dead::1', '2001:dead::1'],
    ['10.1.2.3', '::ffff:198.51.100.1', '198.51.100.1'],
    // All of them are proxies: the first one is as far as anybody knows.
    ['10.1.2.3', '10.7.7.7, 10.8.8.8', '10.7.7.7'],
    // What is left of a hidden or broken hop is nobody's word.
    ['10.1.2.3', '198.51.100.1, unknown', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1, x, 10.8.8.8', '10.8.8.8'],
    ['10.1.2.3', '', '10.1.2.3'],
    // A client that comes past the proxies says what it likes.
    ['192.0.2.10', '198.51.100.1', '192.0.2.10'],
    ['', '198.51.100.1', ''],
  ];

  for (const [remote, forwarded, client] of cases) {
    assert.equal(addresses.of(remote, forwarded), client, `${remote} for ${forwarded}`);
  }
});
