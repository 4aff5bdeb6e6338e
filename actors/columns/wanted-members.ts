/** Where the values of some keys stand in an object, for whoever needs them beside its columns. */
export class WantedMembers {
  readonly names: readonly string[];
  /** Where each name's value begins and ends as it is written; the last one of equal keys. -1: it is not there. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** 1 for a string with escapes. */
  readonly escaped: Uint8Array;

  constructor(names: readonly string[]) {
    this.names = names;
    this.starts = new Int32Array(names.length);
    this.ends = new Int32Array(names.length);
    this.escaped = new Uint8Array(names.length);
  }

  clear(): void {
    this.starts.fill(-1);
  }

  set(member: number, start: number, end: number, isEscaped: boolean): void {
    this.starts[member] = start;
    this.ends[member] = end;
    this.escaped[member] = isEscaped ? 1 : 0;
  }
}
