/**
 * Standard error for whole lines, of every thread: each is one write(2) by the thread itself. What a thread says right
 * before it dies is then read by somebody, where its own `process.stderr` would hand it to the main thread, which may be the
 * one that hangs; and nothing crosses the main thread, which serves requests. A line costs its writer 1.7 us, where a worker's
 * `process.stderr` costs the worker 0.8 and the main thread 4 (measured with lines of 180 bytes into a pipe).
 *
 * Up to 4,096 bytes are written to a pipe undivided, so lines of threads can't mix; longer ones lose the ends of their
 * longest texts. Whoever reads the pipe may be slow: Node makes pipes non-blocking, and then a line waits a moment. A reader
 * that stands still costs lines, not the service.
 */
import { writeSync } from 'node:fs';

const descriptor = 2;
/** PIPE_BUF of Linux. */
const lineBytesMax = 4_096;
/** UTF-16 units of a line that is never longer than that in UTF-8. */
const lineUnitsSure = Math.floor(lineBytesMax / 3);
/** Characters that each text of a line keeps: tried in turn, until the line fits. */
const textCharacters = [1_000, 250, 60, 10];
const waitMs = 2;
const waitsMax = 50;

export type WriteBytes = (bytes: Uint8Array) => number;

/** A writer of lines over something like write(2): it answers how much it took, or throws. */
export function lineWriter(
  write: WriteBytes,
  wait: (ms: number) => void = standStillFor,
): (line: string) => void {
  let lost = 0;
  return (line) => {
    // Once lines are lost nobody waits any more, until one is taken again: a reader that hangs holds a thread up once.
    const waits = lost === 0 ? waitsMax : 0;
    const bytes = Buffer.from(fitting(line));
    if (lost > 0 && !takes(write, Buffer.from(noteOfLoss(lost)), { waits, waitFor: wait })) lost++;
    else lost = takes(write, bytes, { waits, waitFor: wait }) ? 0 : 1;
  };
}

export const standardError = lineWriter((bytes) => writeSync(descriptor, bytes));

/** Whether all of it was taken. */
function takes(
  write: WriteBytes,
  bytes: Uint8Array,
  { waits, waitFor }: { readonly waits: number; readonly waitFor: (ms: number) => void },
): boolean {
  let taken = 0;
  for (let left = waits; taken < bytes.byteLength; ) {
    try {
      taken += write(bytes.subarray(taken));
    } catch (error) {
      // A reader that is gone, or a full disk: there is nobody to tell.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return false;
      if (left-- <= 0) return false;
      waitFor(waitMs);
    }
  }
  return true;
}

function fitting(line: string): string {
  if (fits(line)) return line;
  const values = JSON.parse(line) as Record<string, unknown>;
  let shorter = line;
  for (const characters of textCharacters) {
    shorter = `${JSON.stringify(values, (_, value) => shortened(value, characters))}\n`;
    if (fits(shorter)) break;
  }
  return shorter;
}

function fits(line: string): boolean {
  return line.length <= lineUnitsSure || Buffer.byteLength(line) <= lineBytesMax;
}

function shortened(value: unknown, characters: number): unknown {
  if (typeof value !== 'string' || value.length <= characters) return value;
  return `${value.slice(0, characters).toWellFormed()}…`;
}

function noteOfLoss(lines: number): string {
  const time = new Date().toISOString();
  return `${JSON.stringify({ level: 'error', time, message: 'lines of this log were lost: nobody read them', lines })}\n`;
}

function standStillFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
