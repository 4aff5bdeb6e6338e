/**
 * The end of a turn of this thread's event loop, in one order: first goes out what the turn has to send, then one of those
 * who gave way goes on. The other way round an answer that is ready waits for a slice of somebody's long work.
 */
const sends: (() => void)[] = [];
const yielding: (() => void)[] = [];
let armed = false;

/** Calls `send` when this turn ends. */
export function atEndOfTurn(send: () => void): void {
  sends.push(send);
  arm();
}

/**
 * Resolves after everything that is ready to run on this thread has had its turn. One goes on in each turn, in the order
 * in which they gave way, and messages that came meanwhile are handled before the next one. If all went on in the same
 * turn, a read would wait for a slice of every write that is under way on its thread.
 */
export function yieldTurn(): Promise<void> {
  return new Promise((resolve) => {
    yielding.push(resolve);
    arm();
  });
}

function arm(): void {
  if (armed) return;
  armed = true;
  setImmediate(endTurn);
}

function endTurn(): void {
  armed = false;
  // What goes on runs when this function has returned, and what it sends belongs to the next turn.
  yielding.shift()?.();
  if (yielding.length > 0) arm();
  for (const send of sends.splice(0)) send();
}
