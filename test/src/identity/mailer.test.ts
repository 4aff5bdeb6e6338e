import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import PostalMime, { type Email } from 'postal-mime';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { systemClock } from '../../../src/base/clock.ts';
import { createLogger } from '../../../src/base/log.ts';
import { MailQueue, MailRefused } from '../../../src/identity/mail-queue.ts';
import { smtpCarrier } from '../../../src/identity/mailer.ts';
import { mailOf } from '../../../src/identity/mails.ts';

const token = '0123456789abcdef'.repeat(3);
const from = 'Tidebäse <no-reply@tide.example>';
const mailTo = (name: string, email = 'ada@example.com') =>
  mailOf({ kind: 'verify', person: { name, email }, token }, 'https://tide.example');

interface Received {
  readonly from: string;
  readonly to: readonly string[];
  readonly raw: string;
  readonly parsed: Email;
}

/** A real mail server on loopback. */
async function mailServer(t: TestContext, options: SMTPServerOptions = {}) {
  const received: Received[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, { envelope }, done) {
      const parts: Buffer[] = [];
      stream.on('data', (part: Buffer) => parts.push(part));
      stream.on('end', () => {
        const raw = Buffer.concat(parts);
        PostalMime.parse(raw)
          .then((parsed) => {
            const { mailFrom, rcptTo } = envelope;
            const to = rcptTo.map(({ address }) => address);
            received.push({
              from: mailFrom === false ? '' : mailFrom.address,
              to,
              raw: raw.toString(),
              parsed,
            });
          })
          .then(() => done(), done);
      });
    },
    ...options,
  });
  server.on('error', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => new Promise<void>((resolve) => server.close(resolve)));
  const { port } = server.server.address() as AddressInfo;
  return { received, port, url: `smtp://127.0.0.1:${port}` };
}

test('a mail arrives with its names, its subject, its text and its page', async (t) => {
  const { received, url } = await mailServer(t);
  const carrier = smtpCarrier({ url, from, tls: 'optional' });
  const mail = { ...mailTo('Łucja “Tide” 😀'), subject: 'Bestätigen – ваш адрес 😀' };

  await carrier.carry(mail);

  carrier.close();
  const [{ parsed, to, from: sender } = assert.fail('nothing came')] = received;
  assert.deepEqual(to, ['ada@example.com']);
  assert.equal(sender, 'no-reply@tide.example');
  assert.deepEqual(parsed.from, { name: 'Tidebäse', address: 'no-reply@tide.example' });
  assert.deepEqual(parsed.to, [{ name: 'Łucja “Tide” 😀', address: 'ada@example.com' }]);
  assert.equal(parsed.subject, 'Bestätigen – ваш адрес 😀');
  assert.equal(parsed.text?.replaceAll('\r\n', '\n').trim(), mail.text.trim());
  assert.ok(parsed.text?.includes(`https://tide.example/verify?token=${token}`));
  assert.equal(parsed.html?.replaceAll('\r\n', '\n').trim(), mail.html.trim());
});

test('no name makes another head or another recipient of itself', async (t) => {
  const { received, url } = await mailServer(t);
  const carrier = smtpCarrier({ url, from, tls: 'optional' });
  const names = ['"Ada" <eve@example.com>, Bob <bob@example.com>', 'Ada, eve@example.com', 'a;b(c)\\"'];

  for (const name of names) await carrier.carry(mailTo(name));

  carrier.close();
  assert.deepEqual(
    received.map(({ to }) => to),
    names.map(() => ['ada@example.com']),
  );
  assert.deepEqual(
    received.map(({ parsed }) => parsed.to),
    names.map((name) => [{ name, address: 'ada@example.com' }]),
  );
});

test('user and password of the URL are used', async (t) => {
  const seen: string[] = [];
  const { received, port } = await mailServer(t, {
    authOptional: false,
    allowInsecureAuth: true,
    onAuth({ username, password }, _, done) {
      seen.push(`${username} ${password}`);
      done(null, { user: username ?? '' });
    },
  });
  const carrier = smtpCarrier({ url: `smtp://ada:p%40ss@127.0.0.1:${port}`, from, tls: 'optional' });

  await carrier.carry(mailTo('Ada'));

  carrier.close();
  assert.equal(received.length, 1);
  assert.deepEqual(seen, ['ada p@ss']);
});

test('a refusal for good is told from a server that is away or busy', async (t) => {
  let responseCode = 550;
  const { url } = await mailServer(t, {
    onRcptTo: (_, __, done) => done(Object.assign(new Error('not today'), { responseCode })),
  });
  const carrier = smtpCarrier({ url, from, tls: 'optional' });

  await assert.rejects(carrier.carry(mailTo('Ada')), MailRefused);
  responseCode = 451;
  await assert.rejects(carrier.carry(mailTo('Ada')), (error: unknown) => !(error instanceof MailRefused));
  const away = smtpCarrier({ url: `smtp://127.0.0.1:${await freePort()}`, from, tls: 'optional' });
  await assert.rejects(away.carry(mailTo('Ada')), (error: unknown) => !(error instanceof MailRefused));
  carrier.close();
  away.close();
});

test('a mail that is put off is sent the next time, and the log says neither to whom nor what', async (t) => {
  let refusals = 2;
  const { url, received } = await mailServer(t, {
    onRcptTo({ address }, _, done) {
      if (refusals-- <= 0) return done();
      done(Object.assign(new Error(`${address} is greylisted`), { responseCode: 451 }));
    },
  });
  const lines: string[] = [];
  // Pauses pass at once.
  const clock = { ...systemClock, after: (_: number, run: () => void) => systemClock.after(1, run) };
  const logger = createLogger('front', 'debug', (line) => lines.push(line));
  const queue = new MailQueue({ carrier: smtpCarrier({ url, from, tls: 'optional' }), clock, logger });
  queue.post('verify', async () => mailTo('Ada'));

  while (received.length === 0) await systemClock.sleep(5);
  await queue.stop();

  assert.equal(lines.length, 2);
  assert.match(lines.join(''), /EENVELOPE 451/);
  assert.ok(!/example|token|0123456789abcdef/.test(lines.join('')), lines.join(''));
});

test('a mail server without TLS gets neither mail nor password, and the log says what to do', async (t) => {
  const seen: string[] = [];
  const { received, port } = await mailServer(t, {
    authOptional: false,
    allowInsecureAuth: true,
    onAuth({ username }, _, done) {
      seen.push(username ?? '');
      done(null, { user: username ?? '' });
    },
  });
  const lines: string[] = [];
  const logger = createLogger('front', 'debug', (line) => lines.push(line));
  const url = `smtp://ada:p%40ss@127.0.0.1:${port}`;
  const queue = new MailQueue({
    carrier: smtpCarrier({ url, from, tls: 'required' }),
    clock: systemClock,
    logger,
  });

  queue.post('verify', async () => mailTo('Ada'));
  while (lines.length === 0) await systemClock.sleep(5);
  await queue.stop();

  assert.deepEqual([received.length, seen], [0, []]);
  assert.equal(lines.length, 1, 'it is not tried again');
  assert.match(lines[0] ?? '', /offers no TLS.*TIDEBASE_SMTP_TLS=optional.*a mail is given up/);
  const optional = smtpCarrier({ url, from, tls: 'optional' });
  await optional.carry(mailTo('Ada'));
  optional.close();
  assert.equal(received.length, 1);
});

test('where TLS is required and offered mails go by it, to a server that shows who it is', async (t) => {
  const { received, port } = await mailServer(t, { disabledCommands: [] });
  const secure: boolean[] = [];
  const by = async (query: string) => {
    const carrier = smtpCarrier({ url: `smtp://localhost:${port}/${query}`, from, tls: 'required' });
    try {
      await carrier.carry(mailTo('Ada'));
      secure.push(true);
    } catch (error) {
      assert.ok(!(error instanceof MailRefused), 'a certificate may be put right');
      secure.push(false);
    } finally {
      carrier.close();
    }
  };

  // The certificate is the test server's own, which nobody has signed.
  await by('');
  await by('?tls.rejectUnauthorized=false');

  assert.deepEqual(secure, [false, true]);
  assert.equal(received.length, 1);
});

/** A port where nobody listens: it was a server's a moment ago. */
async function freePort(): Promise<number> {
  const server = new SMTPServer({ logger: false });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(resolve));
  return port;
}
