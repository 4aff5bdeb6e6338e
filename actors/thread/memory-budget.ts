/**
 * What one actor thread may hold in memory, as a sum that is kept while things come and go: nothing is ever walked to
 * find it out. Whoever holds bytes says so on its line; `host/open-actors.ts` makes room when the sum is over the budget.
 *
 * It counts what stays between two requests, the writes that are on their way, and what SQL queries hold. What a running query
 * reads is the block cache's or short-lived; the server's code, its idle heap and its sockets are no data and not counted.
 */
export type MemoryLine =
  /** What an open actor costs before it holds anything; measured. */
  | 'actors'
  /** Rows of memtables, frozen ones too. */
  | 'memtables'
  /** Writes that are submitted and not yet applied. */
  | 'overlay'
  /** Manifests with their tables of contents, and tombstones. */
  | 'manifests'
  /** What readers of segments hold besides their cached blocks. */
  | 'readers'
  /** Keys and names of tenants. */
  | 'tenants'
  /** Records of the log that wait for their actor. */
  | 'replays'
  /** Bodies of writes that are being read. */
  | 'bodies'
  /** Decoded blocks of segments, and small segments that were built a moment ago, as stored. */
  | 'blocks'
  /** Columns of segments as SQL reads them. */
  | 'columns'
  /** What running SQL queries hold: groups, distinct values and rows. */
  | 'queries';

export type MemoryLines = Readonly<Record<MemoryLine, number>>;

/** What passes through soon, and is collected with the youngest objects. */
const passing: ReadonlySet<MemoryLine> = new Set(['overlay', 'bodies', 'queries']);

export class MemoryBudget {
  readonly bytesMax: number;
  readonly #onLetGo: (bytes: number) => void;
  readonly #lines: Record<MemoryLine, number> = {
    actors: 0,
    memtables: 0,
    overlay: 0,
    manifests: 0,
    readers: 0,
    tenants: 0,
    replays: 0,
    bodies: 0,
    blocks: 0,
    columns: 0,
    queries: 0,
  };
  #bytes = 0;

  /** `onLetGo` is told of bytes that were held for long and are no longer. */
  constructor(bytesMax: number, onLetGo: (bytes: number) => void = () => {}) {
    this.bytesMax = bytesMax;
    this.#onLetGo = onLetGo;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes too many; 0 while the sum is within the budget. */
  get over(): number {
    return Math.max(0, this.#bytes - this.bytesMax);
  }

  /** A copy, in bytes. */
  get lines(): MemoryLines {
    return { ...this.#lines };
  }

  line(line: MemoryLine): number {
    return this.#lines[line];
  }

  /** `bytes` may be negative: what is held no longer. */
  add(line: MemoryLine, bytes: number): void {
    this.#lines[line] += bytes;
    this.#bytes += bytes;
    if (bytes < 0 && !passing.has(line)) this.#onLetGo(-bytes);
  }
}

/** What one holder has on the budget. After `release` it holds nothing and says nothing. */
export class MemoryAccount {
  readonly #budget: MemoryBudget;
  readonly #held = new Map<MemoryLine, number>();
  #bytes = 0;
  #released = false;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Says that the holder has this many bytes on the line from now on. */
  set(line: MemoryLine, bytes: number): void {
    if (this.#released) return;
    const change = bytes - (this.#held.get(line) ?? 0);
    if (change === 0) return;
    this.#held.set(line, bytes);
    this.#bytes += change;
    this.#budget.add(line, change);
  }

  release(): void {
    for (const [line, bytes] of this.#held) this.#budget.add(line, -bytes);
    this.#held.clear();
    this.#bytes = 0;
    this.#released = true;
  }
}
