import { appendFile, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from './clock.ts';

export interface DailyFileOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly daysKept: number;
  /** Bytes of a day's file: past it lines that may be dropped are. */
  readonly dayBytesMax: number;
  /** Lines that wait for a slow disk. */
  readonly linesWaitingMax: number;
  /** Told once, until lines are written again. */
  readonly onLoss: (reason: unknown) => void;
}

const fileName = /^(\d{4}-\d\d-\d\d)\.jsonl$/;
const dayMs = 24 * 3_600_000;
/** Between two writes: a flood of lines is written some hundreds at a time, since each write opens the file. */
const restMs = 100;

/**
 * Lines for people to read later, in a folder with one file a UTC day: `2026-11-22.jsonl`, readable by its owner alone.
 * Files of days long past are deleted when a new day begins. Lines are written in their order, soon after they were given and
 * before `close` resolves; a failure is told of and costs its lines, never their giver.
 */
export class DailyFile {
  readonly #options: DailyFileOptions;
  #waiting: string[] = [];
  #writing: Promise<void> | null = null;
  #day = '';
  /** Bytes of the day's file, with the lines that wait. */
  #bytes = 0;
  #losing = false;
  #isClosing = false;
  #endRest = () => {};

  constructor(options: DailyFileOptions) {
    this.#options = options;
  }

  /** `line` without its end. `droppable`: others could fill the day's file with such lines. */
  append(line: string, { droppable }: { readonly droppable: boolean }): void {
    const { linesWaitingMax, dayBytesMax } = this.#options;
    if (this.#waiting.length >= linesWaitingMax) return this.#lose('too many lines wait for the disk');
    if (droppable && this.#isToday() && this.#bytes >= dayBytesMax)
      return this.#lose('the file of this day is full');
    this.#bytes += Buffer.byteLength(line) + 1;
    this.#waiting.push(`${line}\n`);
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when what was given before is written, or lost. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#endRest();
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const text = this.#waiting.join('');
      this.#waiting = [];
      try {
        await this.#write(text);
        this.#losing = false;
      } catch (error) {
        this.#day = '';
        this.#lose(error);
      }
      if (!this.#isClosing) await this.#rest();
    }
    this.#writing = null;
  }

  #rest(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(restMs, resolve);
      this.#endRest = () => {
        cancel();
        resolve();
      };
    });
  }

  async #write(text: string): Promise<void> {
    const { folder } = this.#options;
    const isNew = !this.#isToday();
    const day = this.#today();
    const file = join(folder, `${day}.jsonl`);
    let whole = text;
    if (isNew) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const before = await stateOf(file);
      this.#bytes = before.bytes + Buffer.byteLength(text);
      // A process that was killed may have left half a line.
      if (before.isTorn) whole = `\n${text}`;
      this.#day = day;
      await this.#deleteOld(day);
    }
    await appendFile(file, whole, { mode: 0o600 });
  }

  async #deleteOld(today: string): Promise<void> {
    const { folder, daysKept } = this.#options;
    const oldest = dayOf(Date.parse(today) - (daysKept - 1) * dayMs);
    for (const name of await readdir(folder)) {
      const day = fileName.exec(name)?.[1];
      if (day !== undefined && day < oldest) await rm(join(folder, name), { force: true });
    }
  }

  #today(): string {
    return dayOf(this.#options.clock.now());
  }

  #isToday(): boolean {
    return this.#day === this.#today();
  }

  #lose(reason: unknown): void {
    if (!this.#losing) this.#options.onLoss(reason);
    this.#losing = true;
  }
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

async function stateOf(file: string): Promise<{ readonly bytes: number; readonly isTorn: boolean }> {
  // Made where it is missing, so that its mode is ours from the first byte.
  const handle = await open(file, 'a+', 0o600);
  try {
    const { size } = await handle.stat();
    if (size === 0) return { bytes: 0, isTorn: false };
    const { buffer } = await handle.read({ buffer: Buffer.alloc(1), position: size - 1 });
    return { bytes: size, isTorn: buffer.toString() !== '\n' };
  } finally {
    await handle.close();
  }
}
