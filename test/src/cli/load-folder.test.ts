/** How `tidebase load` sends; a server that answers by script stands at the other end of a real connection. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runLoad } from '../../../load-tests/load-command.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { batchBytesMax, batchDocumentsMax } from '../../../src/cli/document-batches.ts';
import { parseLoadArguments } from '../../../src/cli/load-arguments.ts';
import { LoadFailed, requestsInFlightMax, sendFolder } from '../../../src/cli/send-folder.ts';
import { UsageError } from '../../../src/cli/target-arguments.ts';
import { attemptsMax, retryAfterSecondsMax } from '../../../src/cli/write-request.ts';

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly ids: readonly string[];
  readonly bytes: number;
}

interface Script {
  readonly url: string;
  readonly received: readonly Received[];
  /** The most requests that were open at once. */
  readonly openMax: () => number;
}

const ends: (() => void)[] = [];
after(() => {
  for (const end of ends) end();
});

/** `answer` is asked with the number of the request, from 0. */
async function scripted(answer: (request: number) => Answer | Promise<Answer>): Promise<Script> {
  const received: Received[] = [];
  let open = 0;
  let openMax = 0;
  const server = createServer(async (request, response) => {
    openMax = Math.max(openMax, ++open);
    const number = received.length;
    received.push(await receive(request));
    const { status, headers = {}, body = {} } = await answer(number);
    response.writeHead(status, headers).end(JSON.stringify(body));
    open--;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ends.push(() => server.close().closeAllConnections());
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    openMax: () => openMax,
  };
}

async function receive(request: IncomingMessage): Promise<Received> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const body = Buffer.concat(parts);
  const { docs } = JSON.parse(body.toString()) as { docs: { id: string }[] };
  const { url: path = '', headers } = request;
  return {
    path,
    authorization: headers.authorization,
    ids: docs.map(({ id }) => id),
    bytes: body.byteLength,
  };
}

function folderOf(files: Readonly<Record<string, string | Buffer>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-load-'));
  ends.push(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return folder;
}

/** An address at which nobody listens any more. */
async function closedPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** Waits are written down instead of waited for. */
function impatient() {
  const waits: number[] = [];
  const clock = {
    ...systemClock,
    sleep: async (ms: number) => {
      waits.push(ms);
    },
  };
  return { waits, components: { clock, random: systemRandom } };
}

const target = { namespace: 'files', key: 'tb_key' };
const stored: Answer = { status: 200 };

describe('sending a folder', () => {
  test('sends every document once, with the key, in the order of the names', async () => {
    const server = await scripted(() => stored);
    const folder = folderOf({ 'b.txt': 'two', 'a.txt': 'one', 'c.txt': 'three' });

    const counts = await sendFolder(impatient().components, { ...target, url: server.url, folder });

    assert.deepEqual(counts, { documents: 3, bytes: 11, requests: 1, retries: 0, leftOut: 0 });
    const [{ path, authorization, ids } = assert.fail('nothing was sent')] = server.received;
    assert.equal(path, '/v1/namespaces/files/docs');
    assert.equal(authorization, 'Bearer tb_key');
    assert.deepEqual(ids, ['a.txt', 'b.txt', 'c.txt']);
  });

  test('bounds a request by documents and by bytes, and the requests in flight', async () => {
    // Nobody is answered before as many are open as may be, or it shows that they never will.
    const server = await scripted(async () => {
      for (let looks = 0; looks < 100 && server.openMax() < requestsInFlightMax; looks++)
        await systemClock.sleep(20);
      await systemClock.sleep(20);
      return stored;
    });
    const names = Array.from({ length: batchDocumentsMax + 1 }, (_, i) => `small-${i}`);
    const small = Object.fromEntries(names.map((name) => [name, name]));
    const large = Array.from({ length: 20 }, (_, i) => [`large-${i}`, Buffer.alloc(1_900_000, 'x')] as const);
    const folder = folderOf({ ...small, ...Object.fromEntries(large) });

    const counts = await sendFolder(impatient().components, { ...target, url: server.url, folder });

    assert.equal(counts.documents, names.length + large.length);
    assert.equal(new Set(server.received.flatMap(({ ids }) => ids)).size, counts.documents);
    assert.equal(Math.max(...server.received.map(({ ids }) => ids.length)), batchDocumentsMax);
    assert.ok(Math.max(...server.received.map(({ bytes }) => bytes)) <= batchBytesMax + 100);
    assert.equal(server.openMax(), requestsInFlightMax);
  });

  test('sends a document alone that its escapes make larger than a request should be', async () => {
    const server = await scripted(() => stored);
    const folder = folderOf({ a: 'a', b: Buffer.alloc(1_000_000, 0x01), c: 'c' });

    await sendFolder(impatient().components, { ...target, url: server.url, folder });

    assert.deepEqual(server.received.map(({ ids }) => ids).toSorted(), [['a'], ['b'], ['c']]);
  });

  test('waits as long as a busy server asks, and sends the same again', async () => {
    const busy = {
      status: 429,
      headers: { 'retry-after': '7' },
      body: { error: 'busy', code: 'write_busy' },
    };
    const server = await scripted((request) =>
      request === 0 ? busy : request === 1 ? { status: 503 } : stored,
    );
    const { waits, components } = impatient();

    const counts = await sendFolder(components, { ...target, url: server.url, folder: folderOf({ a: 'a' }) });

    assert.equal(counts.documents, 1);
    assert.equal(counts.retries, 2);
    assert.equal(waits.length, 2);
    assert.ok((waits[0] ?? 0) >= 7_000 && (waits[1] ?? 0) < 7_000, String(waits));
    assert.deepEqual(
      server.received.map(({ ids }) => ids),
      [['a'], ['a'], ['a']],
    );
  });

  test('gives up on a server that stays busy, and on one that asks for too long', async () => {
    const folder = folderOf({ a: 'a' });
    const tooLong = {
      status: 429,
      headers: { 'retry-after': String(retryAfterSecondsMax + 1) },
      body: { error: 'a day' },
    };
    for (const [answer, attempts] of [
      [{ status: 503, body: { error: 'no' } }, attemptsMax],
      [tooLong, 1],
    ] as const) {
      const server = await scripted(() => answer);

      await assert.rejects(
        sendFolder(impatient().components, { ...target, url: server.url, folder }),
        LoadFailed,
      );

      assert.equal(server.received.length, attempts);
    }
  });

  test('says what the server refuses and begins no other request', async () => {
    const body = { error: 'docs[0].id: bad', code: 'invalid', fields: { 'docs[0].id': 'bad' } };
    const server = await scripted(() => ({ status: 422, body }));
    const files = Array.from({ length: 40 }, (_, i) => [`file-${i}`, Buffer.alloc(1_900_000, 'x')] as const);
    const folder = folderOf(Object.fromEntries(files));

    const sending = sendFolder(impatient().components, { ...target, url: server.url, folder });

    await assert.rejects(sending, (error) => {
      assert.ok(error instanceof LoadFailed);
      assert.match(
        error.message,
        /refused the documents \(422\): docs\[0\]\.id: bad\n {2}docs\[0\]\.id: bad/,
      );
      assert.equal(error.counts.documents, 0);
      return true;
    });
    assert.ok(server.received.length <= requestsInFlightMax, `${server.received.length} requests`);
  });

  test('tries a connection again that breaks after the server had answered', async () => {
    const server = createServer((request, response) => {
      served++;
      if (served === 1) return void request.resume().on('end', () => response.writeHead(503).end());
      if (served === 2) return void request.socket.destroy();
      request.resume().on('end', () => response.writeHead(200).end('{}'));
    });
    let served = 0;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ends.push(() => server.close().closeAllConnections());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

    const counts = await sendFolder(impatient().components, { ...target, url, folder: folderOf({ a: 'a' }) });

    assert.deepEqual([counts.documents, counts.retries], [1, 2]);
  });

  test('leaves out files that are no documents, and says why', async () => {
    const server = await scripted(() => stored);
    const folder = folderOf({
      fine: 'fine',
      'line\nbreak': 'a',
      [`${'é'.repeat(120)}.txt`]: 'fine too: 244 bytes',
      latin: Buffer.from([0xe9]),
      large: Buffer.alloc(2_000_001),
      largest: Buffer.alloc(2_000_000, ' '),
    });
    const reasons: string[] = [];

    const counts = await sendFolder(impatient().components, {
      ...target,
      url: server.url,
      folder,
      onLeftOut: ({ path, reason }) => reasons.push(`${path}: ${reason}`),
    });

    assert.deepEqual([counts.documents, counts.leftOut], [3, 3]);
    assert.deepEqual(reasons, ['large: large', 'latin: not-utf8', 'line\nbreak: id']);
  });
});

describe('the arguments of load', () => {
  const right = ['folder', '-n', 'name', '--key', 'tb_k'];

  test('may come from the environment, and win over it', () => {
    const env = { TIDEBASE_URL: 'https://a.example/base/', TIDEBASE_API_KEY: 'tb_env' };

    assert.equal(parseLoadArguments(right, env)?.url, 'https://a.example/base');
    assert.equal(parseLoadArguments(right, env)?.key, 'tb_k');
    assert.equal(parseLoadArguments(['f', '-n', 'n'], env)?.key, 'tb_env');
    assert.equal(parseLoadArguments([...right, '--url', 'http://b'], env)?.url, 'http://b');
    assert.equal(parseLoadArguments(right, { TIDEBASE_URL: '' })?.url, 'http://127.0.0.1:8080');
  });

  test('that cannot be understood are refused with a sentence', () => {
    for (const args of [
      [],
      ['a', 'b', '-n', 'n', '--key', 'k'],
      ['folder', '--key', 'k'],
      ['folder', '-n', 'Bad Name', '--key', 'k'],
      ['folder', '-n', 'n'],
      ['folder', '-n', 'n', '--key', 'a\nb'],
      [...right, '--url', 'ftp://x'],
      [...right, '--url', 'nowhere'],
      [...right, '--other'],
    ]) {
      assert.throws(() => parseLoadArguments(args, {}), UsageError, args.join(' '));
    }
  });
});

describe('the load command', () => {
  test('ends with 2 where it is not understood, and says how to use it', async () => {
    const missing = await runLoad(['/no/such/folder', '-n', 'n'], {
      url: 'http://127.0.0.1:1',
      key: 'tb_key',
    });

    assert.equal(missing.code, 2);
    assert.match(
      missing.errors,
      /^tidebase load: there is no folder \/no\/such\/folder\n\ntidebase load FOLDER/,
    );
  });

  test('ends with 1 where there is no server or the key is bad', async () => {
    const folder = folderOf({ a: 'a' });
    const server = await scripted(() => ({
      status: 401,
      body: { error: 'unknown key', code: 'unauthorized' },
    }));

    const nowhere = await closedPort();

    const unreachable = await runLoad([folder, '-n', 'n'], { url: nowhere, key: 'tb_key' });
    const refused = await runLoad([folder, '-n', 'n'], { url: server.url, key: 'tb_bad' });

    assert.deepEqual([unreachable.code, refused.code], [1, 1]);
    assert.ok(
      unreachable.errors.includes(`the server at ${nowhere} cannot be reached: `),
      unreachable.errors,
    );
    assert.match(refused.errors, /does not accept the API key: unknown key/);
  });

  test('names the files that it leaves out, all of them when asked', async () => {
    const server = await scripted(() => stored);
    const bad = Array.from({ length: 5 }, (_, i) => [`bad-${i}`, Buffer.from([0xff])] as const);
    const folder = folderOf({ fine: 'fine', ...Object.fromEntries(bad) });
    const to = { url: server.url, key: 'tb_key' };

    const short = await runLoad([folder, '-n', 'n'], to);
    const verbose = await runLoad([folder, '-n', 'n', '--verbose'], to);

    assert.deepEqual([short.code, verbose.code], [0, 0]);
    assert.match(short.output, /^loaded 1 file, 0\.0 MB, into "n" in \d+\.\d s\n/);
    assert.match(short.output, /left out 5 files, not UTF-8 text: bad-0, bad-1, bad-2, …/);
    assert.equal(short.errors, '');
    assert.deepEqual(
      verbose.errors.trimEnd().split('\n'),
      bad.map(([name]) => `left out: ${name} is not UTF-8 text`),
    );
  });

  // Root may read everything unless it gives that up first.
  const humble = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];
  const isHumbled = spawnSync('env', [...humble, 'true']).status === 0;
  const skip = !isHumbled && 'root can read everything, and setpriv does not change that here';
  test('ends with 1 where a file cannot be read', { skip }, async () => {
    const server = await scripted(() => stored);
    const folder = folderOf({ fine: 'fine', secret: 'secret' });
    chmodSync(join(folder, 'secret'), 0);

    const { code, output } = await runLoad([folder, '-n', 'n'], { url: server.url, key: 'tb_key' }, humble);

    assert.equal(code, 1);
    assert.match(output, /left out 1 file, could not be read: secret/);
  });
});
