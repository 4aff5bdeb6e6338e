import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isLoopbackUri,
  redirectHost,
  redirectUriMatches,
  redirectUriProblem,
  redirectWith,
} from '../../../src/oauth/redirect-uri.ts';

const right = [
  'https://claude.ai/api/mcp/auth_callback',
  'https://chatgpt.com/connector/oauth/abc123',
  'https://vscode.dev/redirect',
  'http://127.0.0.1/',
  'http://localhost:33418/',
  'http://[::1]:8080/callback?a=b',
  'cursor://anysphere.cursor-mcp/oauth/callback',
  'com.example.app:/callback',
];

test('addresses of the clients that there are will do', () => {
  for (const uri of right) assert.equal(redirectUriProblem(uri), null, uri);
});

test('addresses that a browser would run, read or hand elsewhere are refused', () => {
  for (const uri of [
    '',
    'callback',
    '/callback',
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    'blob:https://a.example/x',
    'about:blank',
    'vbscript:x',
    'http://client.example/callback',
    'http://127.0.0.1.client.example/callback',
    'http://localhost@client.example/',
    'http://2130706433/',
    'https://client.example/#part',
    'https://user:secret@client.example/',
    'https://client.example/a b',
    'https://client.example/\n',
    'https://client.example\\@other.example/',
    'https://client.example/<script>',
    `https://client.example/${'x'.repeat(1_000)}`,
    'https://ünicode.example/',
    'https://',
  ])
    assert.notEqual(redirectUriProblem(uri), null, uri);
});

test('an address matches as it was written, one of the loopback on any port', () => {
  const known = ['https://a.example/cb', 'http://127.0.0.1/cb', 'http://localhost:1/cb?x=1', 'cursor://x/cb'];
  for (const uri of [...known, 'http://127.0.0.1:50000/cb', 'http://localhost:2/cb?x=1'])
    assert.ok(redirectUriMatches(known, uri), uri);
  for (const uri of [
    'https://a.example/cb/',
    'https://a.example/cb?x',
    'https://a.example:444/cb',
    'https://A.example/cb',
    'https://a.example/CB',
    'http://127.0.0.1:50000/other',
    'http://localhost:50000/cb',
    'http://127.0.0.1:x/cb',
    'http://[::1]/cb',
    'cursor://x/cb/',
    'cursor://y/cb',
  ])
    assert.ok(!redirectUriMatches(known, uri), uri);
});

test('a person is shown where they are sent', () => {
  assert.equal(redirectHost('https://claude.ai/api/mcp/auth_callback'), 'claude.ai');
  assert.equal(redirectHost('http://127.0.0.1:1234/cb'), '127.0.0.1:1234');
  assert.equal(redirectHost('cursor://anysphere.cursor-mcp/oauth/callback'), 'cursor://anysphere.cursor-mcp');
  assert.equal(redirectHost('com.example.app:/callback'), 'com.example.app:');
  assert.ok(isLoopbackUri('http://localhost:1/cb') && !isLoopbackUri('https://localhost/cb'));
});

test('parameters are added to those that an address has', () => {
  assert.equal(
    redirectWith('https://a.example/cb', { code: 'x y', state: null }),
    'https://a.example/cb?code=x+y',
  );
  assert.equal(
    redirectWith('https://a.example/cb?q=1', { state: '&' }),
    'https://a.example/cb?q=1&state=%26',
  );
  assert.equal(
    redirectWith('cursor://x/cb', { iss: 'https://t.example' }),
    'cursor://x/cb?iss=https%3A%2F%2Ft.example',
  );
});
