import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, it } from 'node:test';
import { lineWriter } from '../../../src/base/standard-error.ts';

const lineBytesMax = 4_096;

/** A pipe that is full at first, or always. */
function pipe(options: { refusals: number }) {
  let { refusals } = options;
  const lines: string[] = [];
  let waits = 0;
  const write = lineWriter(
    (bytes) => {
      if (refusals-- > 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' });
      lines.push(Buffer.from(bytes).toString());
      return bytes.byteLength;
    },
    () => waits++,
  );
  return {
    lines,
    write,
    waits: () => waits,
    fill(times: number) {
      refusals = times;
    },
  };
}

describe('a writer of lines', () => {
  it('makes a long line fit by its longest texts, and keeps it JSON', () => {
    const { lines, write } = pipe({ refusals: 0 });
    const fields = {
      level: 'error',
      error: '\u0001'.repeat(9_000),
      text: 'ü😀'.repeat(2_000),
      requestId: 'a-1',
    };

    write(`${JSON.stringify(fields)}\n`);

    const [line = ''] = lines;
    assert.ok(Buffer.byteLength(line) <= lineBytesMax, `${Buffer.byteLength(line)}`);
    const kept = JSON.parse(line);
    assert.equal(kept.requestId, 'a-1');
    assert.match(kept.text, /^ü😀ü.*…$/u);
    assert.ok(line.endsWith('\n'));
  });

  it('waits for a reader that is slow', () => {
    const { lines, write, waits } = pipe({ refusals: 3 });

    write('{"a":1}\n');

    assert.deepEqual(lines, ['{"a":1}\n']);
    assert.equal(waits(), 3);
  });

  it('goes on without a reader that stands still, and says what was lost once there is one', () => {
    const { lines, write, waits, fill } = pipe({ refusals: Number.POSITIVE_INFINITY });
    write('{"a":1}\n');
    const waitedOnce = waits();
    write('{"a":2}\n');
    write('{"a":3}\n');
    assert.equal(waits(), waitedOnce);

    fill(0);
    write('{"a":4}\n');
    write('{"a":5}\n');

    const [note = '{}', ...others] = lines;
    assert.equal(JSON.parse(note).lines, 3);
    assert.deepEqual(others, ['{"a":4}\n', '{"a":5}\n']);
  });

  it('never throws', () => {
    const write = lineWriter(() => {
      throw Object.assign(new Error('gone'), { code: 'EPIPE' });
    });

    write('{"a":1}\n');
    write('{"a":2}\n');
  });

  it('keeps the lines of several threads whole, also those right before the process ends', async () => {
    const log = new URL('../../../src/base/log.js', import.meta.url).href;
    const program = `
      import { isMainThread, threadId, Worker } from 'node:worker_threads';
      import { createLogger } from ${JSON.stringify(log)};
      const logger = createLogger('thread-' + threadId, 'debug');
      process.stderr; // Makes the pipe non-blocking, as it is in a server.
      let ended = 0;
      const onExit = () => { if (++ended === 3) process.kill(process.pid, 'SIGKILL'); };
      if (isMainThread) for (const _ of '123') new Worker(new URL(import.meta.url)).on('exit', onExit);
      for (let at = 0; at < 500; at++) logger.info('a line', { at, text: 'x'.repeat((at * 13) % 3900) });
    `;
    const module = `data:text/javascript,${encodeURIComponent(program)}`;
    const child = spawn(process.execPath, ['-e', `import(${JSON.stringify(module)})`], {
      stdio: ['ignore', 'inherit', 'pipe'],
    });
    let text = '';
    child.stderr.setEncoding('utf8').on('data', (part) => {
      text += part;
    });
    await new Promise((resolve) => child.once('close', resolve));

    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const expected = Array.from({ length: 500 }, (_, at) => at);
    const threads = new Set(lines.map(({ thread }) => thread));
    assert.equal(threads.size, 4);
    for (const name of threads) {
      const its = lines.filter(({ thread }) => thread === name).map(({ at }) => at);
      assert.deepEqual(its, expected, name);
    }
  });
});
