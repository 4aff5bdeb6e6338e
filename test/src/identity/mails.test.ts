import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mailOf } from '../../../src/identity/mails.ts';

const person = { name: 'Win <b>now</b> at http://evil.example', email: 'ada@example.com' };
const token = 'ab12'.repeat(13);

test('a mail leads to the page of its kind, in text and in HTML', () => {
  for (const kind of ['verify', 'reset'] as const) {
    const mail = mailOf({ kind, person, token }, 'https://tide.example/base');

    const link = `https://tide.example/base/${kind}?token=${token}`;
    assert.ok(mail.text.split('\n').includes(link), 'on a line of its own');
    assert.equal(mail.html.split(`href="${link}"`).length, 3);
    assert.equal(mail.kind, kind);
    assert.deepEqual(mail.to, { name: person.name, address: person.email });
  }
});

test('what a stranger chose as a name stands in no text, and a base URL is escaped', () => {
  const mail = mailOf({ kind: 'verify', person, token }, 'https://tide.example/a&b"c');

  assert.ok(!`${mail.subject}${mail.text}${mail.html}`.includes('evil'));
  assert.ok(mail.html.includes('href="https://tide.example/a&amp;b&quot;c/verify'));
});
