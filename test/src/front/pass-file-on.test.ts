/** Files of clients that go through one server to another, which has them on its disk. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { actorAnswerFromWire, type ReceivedFile } from '../../../protocol/messages.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { unpackMessage } from '../../../src/base/msgpack.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { fileOfPeer } from '../../../src/front/file-of-peer.ts';
import { CHUNKED_BODY } from '../../../src/front/http-guards.ts';
import type { TakeChunk } from '../../../src/front/http-types.ts';
import { type PassingOn, passFileOn } from '../../../src/front/pass-file-on.ts';
import { FileReceiver } from '../../../src/front/receive-file.ts';
import { eventually } from '../../support/eventually.ts';
import { MemoryTransport } from '../../support/peer-links.ts';
import {
  callOf,
  done,
  membersOf,
  nameWhere,
  type RoutedServer,
  startServers,
} from '../../support/routed-servers.ts';
import { temporaryFolder } from '../../support/server-process.ts';

const two = ['a', 'b'];
const name = nameWhere([two, 'b']);

async function start({ storedBytes = 0 } = {}) {
  const transport = new MemoryTransport();
  const servers = await startServers(two, { clock: systemClock, transport });
  const [a, b] = servers;
  if (a === undefined || b === undefined) return assert.fail();
  const folder = temporaryFolder();
  const sharesHeard: number[] = [];
  const files = new FileReceiver({
    folder,
    random: systemRandom,
    clock: systemClock,
    storedBytes: async () => storedBytes,
    intake: { came: () => undefined },
    fileComes: ({ owner }) => sharesHeard.push(owner),
  });
  b.receiveFile = fileOfPeer(files, systemClock);
  const received: Buffer[] = [];
  b.act = (_, body, respond) => {
    const { path, bytes } = unpackMessage(body ?? new Uint8Array()) as ReceivedFile;
    received.push(readFileSync(path));
    assert.equal(received.at(-1)?.byteLength, bytes);
    respond(done);
  };
  const close = () => {
    for (const server of servers) server.close();
  };
  return { transport, a, b, folder, received, sharesHeard, close };
}

/** A client that sends its file as fast as it is taken. */
class Client {
  readonly declaredBytes: number;
  readonly #file: Uint8Array;
  /** Bytes that were taken. */
  sent = 0;
  /** Called before each chunk. */
  before: (sent: number) => Promise<void> | void = () => {};

  constructor(file: Uint8Array, declares = true) {
    this.#file = file;
    this.declaredBytes = declares ? file.byteLength : CHUNKED_BODY;
  }

  async streamBody(_: number, take: TakeChunk): Promise<number> {
    for (let at = 0; at < this.#file.byteLength; at += 50_000) {
      await this.before(at);
      const chunk = this.#file.slice(at, at + 50_000);
      this.sent += chunk.byteLength;
      await take(chunk);
    }
    await this.before(this.#file.byteLength);
    return this.#file.byteLength;
  }
}

const sendFrom = (server: RoutedServer, more: Partial<PassingOn> = {}): PassingOn => ({
  admit: async () => {},
  send: (file) => server.router.callWithFile(callOf('importDocuments', name), file),
  ...more,
});

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: unknown) => (error instanceof ApiError ? error.code : String(error)),
  );

test('a file comes whole to the disk of the server that owns the namespace, and is gone afterwards', async () => {
  const { a, b, folder, received, close } = await start();
  const file = new Uint8Array(5_000_000).map((_, at) => at % 251);

  for (const declares of [true, false]) {
    const answer = await passFileOn(new Client(file, declares), sendFrom(a));

    assert.equal(actorAnswerFromWire(answer.head).status, 200);
    assert.equal(Buffer.compare(received.pop() ?? Buffer.alloc(0), file), 0);
  }
  assert.deepEqual(readdirSync(folder), []);
  assert.equal(b.got[0]?.caller.owner, 42);
  assert.deepEqual([a.router.isElsewhere({ tenantId: 7, namespace: name }), a.got.length], [true, 0]);
  close();
});

test('who imports hears of a file of 8 MB and more once, as soon as that is known', async () => {
  const { a, sharesHeard, close } = await start();
  const large = Buffer.alloc(limits.importHelpedBytesMin);
  const cases = [
    { body: large, declares: true, heardAt: 50_000 },
    { body: large, declares: false, heardAt: large.length },
    { body: large.subarray(1), declares: true, heardAt: null },
    { body: large.subarray(1), declares: false, heardAt: null },
  ];
  for (const { body, declares, heardAt } of cases) {
    sharesHeard.length = 0;
    const client = new Client(body, declares);
    client.before = async (sent) => {
      // The other server has what was sent before.
      if (sent === heardAt) await eventually(() => sharesHeard.length === 1, 'the file was heard of');
      else if (!declares || heardAt === null) assert.deepEqual(sharesHeard, []);
    };

    await passFileOn(client, sendFrom(a));

    assert.deepEqual(sharesHeard, heardAt === null ? [] : [42]);
  }
  close();
});

test('a packed file goes to the other server as it is, and is unpacked there', async () => {
  const { a, folder, received, close } = await start();
  const file = Buffer.from('a line that repeats\n'.repeat(200_000));
  const call = { ...callOf('importDocuments', name), argument: 'gzip' };
  const send: PassingOn['send'] = (body) => a.router.callWithFile(call, body);
  const packed = new Client(gzipSync(file));

  const answer = await passFileOn(packed, sendFrom(a, { send }));

  assert.equal(actorAnswerFromWire(answer.head).status, 200);
  assert.ok(packed.sent < 100_000);
  assert.equal(Buffer.compare(received.pop() ?? Buffer.alloc(0), file), 0);

  const cut = new Client(gzipSync(file).subarray(0, -9));
  assert.equal(await codeOf(passFileOn(cut, sendFrom(a, { send }))), 'invalid');
  assert.deepEqual([received.length, readdirSync(folder)], [0, []]);
  close();
});

test('a client is held up while the other server takes nothing', async () => {
  const { a, b, close } = await start();
  const receive = b.receiveFile;
  let go = () => {};
  const held = new Promise<void>((resolve) => {
    go = resolve;
  });
  b.receiveFile = async (...asked) => {
    await held;
    return receive(...asked);
  };
  const client = new Client(new Uint8Array(5_000_000));

  const answer = passFileOn(client, sendFrom(a));
  await systemClock.sleep(200);

  const most = 2 * limits.peerCreditBytes + 4 * limits.peerFrameBytesMax;
  assert.ok(client.sent > 0 && client.sent <= most, `${client.sent} bytes were taken`);
  go();
  await answer;
  close();
});

test('a client that is refused when its file has come hears that, and nothing is begun', async () => {
  const { a, b, folder, close } = await start();
  const admit = () => Promise.reject(new ApiError('unauthorized', 'the key was revoked meanwhile'));

  const code = await codeOf(passFileOn(new Client(new Uint8Array(3_000_000)), sendFrom(a, { admit })));

  assert.equal(code, 'unauthorized');
  for (let n = 0; n < 100 && readdirSync(folder).length > 0; n++) await systemClock.sleep(5);
  assert.deepEqual([b.got.length, readdirSync(folder)], [0, []]);
  close();
});

test('a file that the other server refuses is not read to its end', async () => {
  const { a, b, close } = await start({ storedBytes: 2_000 });
  const client = new Client(new Uint8Array(20_000_000));
  const call = callOf('importDocuments', name);
  const caller = { ...call.caller, storageQuotaBytes: 1_000 };
  const send: PassingOn['send'] = (file) => a.router.callWithFile({ ...call, caller }, file);

  assert.equal(await codeOf(passFileOn(client, sendFrom(a, { send }))), 'quota_full');

  assert.ok(client.sent < 5_000_000);
  assert.equal(b.got.length, 0);
  close();
});

test('a server that is lost has begun nothing before the end of the file, and may have afterwards', async () => {
  for (const [at, code] of [
    [1_000_000, 'unavailable'],
    [Number.POSITIVE_INFINITY, 'write_unknown'],
  ] as const) {
    const { transport, a, b, folder, close } = await start();
    const cut = () => {
      for (const [link] of transport.links) link.destroy();
    };
    b.act = cut;
    const client = new Client(new Uint8Array(3_000_000));
    client.before = (sent) => {
      if (sent === at) cut();
    };

    assert.equal(await codeOf(passFileOn(client, sendFrom(a))), code);

    assert.equal(b.got.length, code === 'unavailable' ? 0 : 1);
    if (code === 'unavailable') {
      for (let n = 0; n < 100 && readdirSync(folder).length > 0; n++) await systemClock.sleep(5);
      assert.deepEqual(readdirSync(folder), []);
    }
    close();
  }
});

test('a file whose namespace moves while it comes is not imported, and one whose owner stays is', async () => {
  for (const [servers, code] of [
    [['a'], 'unavailable'],
    [['a', 'b'], 'answered'],
  ] as const) {
    const { a, b, close } = await start();
    const client = new Client(new Uint8Array(3_000_000));
    client.before = (sent) => {
      if (sent === 1_000_000) b.members.use(membersOf('b', 2, two, servers));
    };

    assert.equal(await codeOf(passFileOn(client, sendFrom(a))), code);

    assert.equal(b.got.length, code === 'answered' ? 1 : 0);
    close();
  }
});
