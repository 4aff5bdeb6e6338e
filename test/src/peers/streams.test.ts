import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import type { ReceivedBody } from '../../../src/peers/message.ts';
import { MemoryTransport } from '../../support/peer-links.ts';
import { ask, startTestServer, until } from './servers.ts';

const chunkBytes = 50_000;
const bodyBytes = 64 * 1024 * 1024;

test('a body of 64 MB waits at its source for a slow reader, and small calls pass it', async () => {
  const bodies: ReceivedBody[] = [];
  const transport = new MemoryTransport();
  const one = await startTestServer({ name: 'one', transport });
  const other = await startTestServer({
    name: 'other',
    transport,
    handler: {
      call: ({ body, head }, respond) => {
        if (head === 'small') return respond('small');
        bodies.push(body);
        void drain(body).then((bytes) => respond(bytes));
      },
    },
  });
  one.peers.use([other.member]);
  let produced = 0;
  let read = 0;
  let mostHeld = 0;
  let mayRead = false;
  async function drain(body: ReceivedBody): Promise<number> {
    await until(() => mayRead, 'the reader begins');
    if (body === null || body instanceof Uint8Array) return assert.fail('it came whole');
    for await (const chunk of body) {
      read += chunk.byteLength;
      mostHeld = Math.max(mostHeld, produced - read);
    }
    return read;
  }
  async function* source() {
    for (let at = 0; at < bodyBytes; at += chunkBytes) {
      const chunk = new Uint8Array(Math.min(chunkBytes, bodyBytes - at));
      produced += chunk.byteLength;
      yield chunk;
    }
  }

  let largeIsDone = false;
  const large = ask(one, other, { body: { bytes: bodyBytes, chunks: source() }, deadlineMs: 60_000 }).finally(
    () => {
      largeIsDone = true;
    },
  );
  await until(() => bodies.length === 1, 'the large one began');
  for (let n = 0; n < 50; n++) assert.equal((await ask(one, other, { head: 'small' })).head, 'small');
  // What nobody reads: the credit, and what is read ahead of the source.
  const heldMax = limits.peerCreditBytes + 2 * limits.peerFrameBytesMax + 2 * chunkBytes;
  assert.ok(produced <= heldMax, `${produced} bytes of ${heldMax} while nobody reads`);
  mayRead = true;
  for (let n = 0; n < 50; n++) await ask(one, other, { head: 'small' });
  assert.equal(largeIsDone, false, 'small calls were answered while the large one was on its way');

  assert.equal((await large).head, bodyBytes);
  assert.ok(mostHeld <= heldMax, `${mostHeld} bytes of ${heldMax} on the way`);
  one.peers.close();
  other.peers.close();
});
