import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { toShared } from '../../../src/base/garbage.ts';
import {
  ChannelClosed,
  type ChannelHandler,
  type Message,
  PortChannel,
} from '../../../src/base/port-channel.ts';
import { seededRandom } from '../../support/segments.ts';

const inlineBytesMax = 1_000;
const refusing: ChannelHandler = { call: (_message, respond) => respond(null), notice() {} };

async function connected<T>(
  handler: ChannelHandler,
  use: (client: PortChannel, server: PortChannel) => Promise<T>,
): Promise<T> {
  const { port1, port2 } = new MessageChannel();
  const client = new PortChannel(port1, refusing, inlineBytesMax);
  const server = new PortChannel(port2, handler, inlineBytesMax);
  try {
    return await use(client, server);
  } finally {
    client.close();
    server.close();
  }
}

const echo: ChannelHandler = {
  call: (message, respond) =>
    respond(message.head, message.body === null ? null : new Uint8Array(message.body)),
  notice() {},
};

const bytesOf = (length: number, fill = 7) => new Uint8Array(length).fill(fill);

test('a call is answered with head and body, of any size', async () => {
  await connected(echo, async (client) => {
    for (const length of [0, 1, inlineBytesMax, inlineBytesMax + 1, 300_000]) {
      const answer = await client.call(['op', length, { a: [1n, 'ü'] }], bytesOf(length));
      assert.deepEqual(answer.head, ['op', length, { a: [1n, 'ü'] }]);
      assert.deepEqual(Buffer.from(answer.body ?? []), Buffer.from(bytesOf(length)));
    }
    assert.equal((await client.call('none')).body, null);
    assert.equal(client.waiting, 0);
  });
});

test('a body that Node made of a string is moved, and what was made beside it stays', async () => {
  await connected(echo, async (client) => {
    for (const length of [4_096, 20_000, 32_000]) {
      const beside = Buffer.from('beside');
      const answer = await client.call('op', Buffer.from('x'.repeat(length)));
      assert.equal(answer.body?.byteLength, length);
      assert.equal(beside.toString(), 'beside');
    }
  });
});

test('many calls of one turn travel together and each gets its own answer', async () => {
  const random = seededRandom(91);
  await connected(echo, async (client) => {
    const lengths = Array.from({ length: 300 }, () => Math.floor(random() * 2_500));

    const answers = await Promise.all(lengths.map((length, n) => client.call(n, bytesOf(length, n % 256))));

    answers.forEach(({ head, body }, n) => {
      assert.equal(head, n);
      assert.deepEqual(Buffer.from(body ?? []), Buffer.from(bytesOf(lengths[n] ?? 0, n % 256)));
    });
  });
});

test('answers may come in another order than the calls', async () => {
  const held: (() => void)[] = [];
  const handler: ChannelHandler = {
    call: (message, respond) => {
      held.push(() => respond(message.head));
      if (held.length === 3) for (const answer of held.reverse()) answer();
    },
    notice() {},
  };
  await connected(handler, async (client) => {
    const answers = await Promise.all([1, 2, 3].map((n) => client.call(n)));

    assert.deepEqual(
      answers.map(({ head }) => head),
      [1, 2, 3],
    );
  });
});

test('messages arrive in the order in which they were sent', async () => {
  const seen: unknown[] = [];
  const handler: ChannelHandler = {
    call: (message, respond) => {
      seen.push(message.head);
      respond(null);
    },
    notice: (message) => seen.push(message.head),
  };
  await connected(handler, async (client) => {
    for (let n = 0; n < 100; n++) {
      if (n % 3 === 0) client.notify(n, bytesOf(n % 7 === 0 ? 5_000 : 10));
      else void client.call(n, bytesOf(n % 5 === 0 ? 5_000 : 10));
      if (n % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await client.call('end');

    assert.deepEqual(seen, [...Array.from({ length: 100 }, (_, n) => n), 'end']);
  });
});

test('shared memory is neither copied nor moved', async () => {
  const got: Message[] = [];
  const handler: ChannelHandler = {
    call: (message, respond) => {
      got.push(message);
      respond(null);
    },
    notice() {},
  };
  await connected(handler, async (client) => {
    const shared = toShared(bytesOf(5_000));
    await client.call('whole', shared);
    await client.call('part', shared.subarray(100, 110));
    await client.call('twice', shared);
    shared[105] = 99;

    assert.deepEqual(
      got.map(({ body }) => body?.byteLength),
      [5_000, 10, 5_000],
    );
    assert.deepEqual(
      got.map(({ body }) => body?.[body.byteLength === 10 ? 5 : 105]),
      [99, 99, 99],
    );
    assert.equal(shared.byteLength, 5_000);
  });
});

test('a large body of one’s own is moved', async () => {
  await connected(echo, async (client) => {
    const body = bytesOf(5_000);

    const answer = await client.call('moved', body);

    assert.equal(body.byteLength, 0);
    assert.equal(answer.body?.byteLength, 5_000);
  });
});

test('when the other side goes, what waits is rejected and later calls at once', async () => {
  await connected({ call() {}, notice() {} }, async (client, server) => {
    const waiting = [client.call(1), client.call(2)];
    const outcomes = Promise.allSettled(waiting);
    await new Promise((resolve) => setTimeout(resolve, 5));
    server.close();

    for (const outcome of await outcomes)
      assert.ok(outcome.status === 'rejected' && outcome.reason instanceof ChannelClosed);
    await assert.rejects(client.call(3), ChannelClosed);
    client.notify('nobody hears it');
    assert.equal(client.waiting, 0);
  });
});

test('closing sends what is queued', async () => {
  const { port1, port2 } = new MessageChannel();
  const heard = new Promise<unknown>((resolve) => {
    new PortChannel(port2, { call() {}, notice: (message) => resolve(message.head) }, inlineBytesMax);
  });
  const client = new PortChannel(port1, refusing, inlineBytesMax);
  client.notify('last words');

  client.close();
  client.close();

  assert.equal(await heard, 'last words');
});

test('a call that is cancelled is told to who serves it, once, and is answered all the same', async () => {
  let cancelled = 0;
  let server: PortChannel | null = null;
  const late: ChannelHandler = {
    call(message, respond) {
      if (message.head === 'long')
        server?.onCancel(message.id ?? 0, () => {
          cancelled++;
          respond('ended early');
        });
      else respond('done');
    },
    notice() {},
  };
  await connected(late, async (client, other) => {
    server = other;
    const answer = new Promise((resolve, reject) => {
      const id = client.callWith('long', null, ({ head }) => resolve(head), reject);
      setTimeout(() => {
        client.cancel(id);
        client.cancel(id);
      }, 5);
    });

    assert.equal(await answer, 'ended early');
    assert.equal(cancelled, 1);
    const id = client.callWith(
      'short',
      null,
      () => {},
      () => {},
    );
    await client.call('another');
    client.cancel(id);
    assert.equal((await client.call('another')).head, 'done');
  });
});
