import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Far longer than a busy machine takes for anything that a test waits for. */
const waitMsMax = 60_000;

/** Waits until it holds, for as long as it may take on a busy machine; fails with what did not come about. */
export async function eventually(
  holds: () => boolean | Promise<boolean>,
  what: string | (() => string),
  everyMs = 25,
): Promise<void> {
  for (const deadline = performance.now() + waitMsMax; !(await holds()); await sleep(everyMs)) {
    if (performance.now() < deadline) continue;
    assert.fail(`not within ${waitMsMax} ms: ${typeof what === 'string' ? what : what()}`);
  }
}
