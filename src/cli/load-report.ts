/** What `tidebase load` tells a person: how far it is, and what came of it. */
import type { Clock } from '../base/clock.ts';
import { counted, megabytes } from './amounts.ts';
import type { LeftOut, LeftOutReason } from './folder-documents.ts';
import type { LoadCounts } from './send-folder.ts';

export interface Terminal {
  readonly write: (text: string) => void;
  /** A line can be drawn over. */
  readonly redraws: boolean;
}

/** A person sees no faster change; a log file wants a line now and then. */
const redrawMs = 100;
const lineMs = 5_000;

export class ProgressLine {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  #shownAt: number;

  constructor(terminal: Terminal, clock: Clock) {
    this.#terminal = terminal;
    this.#clock = clock;
    this.#shownAt = clock.monotonic();
  }

  show(counts: LoadCounts): void {
    const now = this.#clock.monotonic();
    const { redraws, write } = this.#terminal;
    if (now - this.#shownAt < (redraws ? redrawMs : lineMs)) return;
    this.#shownAt = now;
    const text = `${counted(counts.documents, 'file')} loaded, ${megabytes(counts.bytes)}${retried(counts)}`;
    write(redraws ? `\r\x1b[K${text}` : `${text}\n`);
  }

  /** A line of its own between two drawings. */
  say(line: string): void {
    this.clear();
    this.#terminal.write(`${line}\n`);
  }

  clear(): void {
    if (this.#terminal.redraws) this.#terminal.write('\r\x1b[K');
  }
}

function retried({ retries }: LoadCounts): string {
  return retries === 0 ? '' : `, ${counted(retries, 'request')} sent again`;
}

const reasons: Readonly<Record<LeftOutReason, string>> = {
  large: 'over 2 MB',
  'not-utf8': 'not UTF-8 text',
  id: 'with a name that no document may have',
  special: 'a link or no regular file',
  unreadable: 'could not be read',
};

/** Names that the summary shows of each reason. */
const namesShownMax = 3;

/** The files that were left out, in bounded memory: a count and the first names of each reason. */
export class LeftOutSums {
  readonly #sums = new Map<LeftOutReason, { count: number; readonly names: string[] }>();

  add({ reason, path }: LeftOut): void {
    const sum = this.#sums.get(reason) ?? { count: 0, names: [] };
    sum.count += 1;
    if (sum.names.length < namesShownMax) sum.names.push(path);
    this.#sums.set(reason, sum);
  }

  count(reason: LeftOutReason): number {
    return this.#sums.get(reason)?.count ?? 0;
  }

  /** One line for each reason. */
  lines(): string[] {
    return [...this.#sums].map(([reason, { count, names }]) => {
      const more = count > names.length ? `, … (--verbose names all)` : '';
      return `left out ${counted(count, 'file')}, ${reasons[reason]}: ${names.map(oneLine).join(', ')}${more}`;
    });
  }
}

export function leftOutLine({ path, problem }: LeftOut): string {
  return `left out: ${oneLine(path)} ${problem}`;
}

export function summaryLine(counts: LoadCounts, namespace: string, tookMs: number): string {
  const seconds = (tookMs / 1_000).toFixed(1);
  return `loaded ${counted(counts.documents, 'file')}, ${megabytes(counts.bytes)}, into "${namespace}" in ${seconds} s${retried(counts)}`;
}

/** A file's name may hold what moves a terminal's cursor. */
function oneLine(path: string): string {
  return /[\x00-\x1f\x7f-\x9f]/.test(path) ? JSON.stringify(path) : path;
}
