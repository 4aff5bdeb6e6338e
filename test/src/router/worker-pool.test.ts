import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const program = fileURLToPath(new URL('../../support/end-in-a-task.js', import.meta.url));

describe('threads of native code', () => {
  for (const kind of ['graphs', 'embed'])
    it(`are ended between two calls, or the process would go with them: ${kind}`, async (t) => {
      const { stdout } = await promisify(execFile)(process.execPath, [program, kind]);

      assert.match(stdout, /^all ended$/m);
      // Texts are waited for, and graphs are given up.
      assert.equal(/the task: Error: the server ends/.test(stdout), kind === 'graphs', stdout);
      t.diagnostic(stdout);
    });
});
