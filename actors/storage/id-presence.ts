/**
 * Which ids a memtable that nothing is added to any more may hold. Every new document asks each such memtable for its id,
 * nearly always in vain, and a look-up in a map of a hundred thousand strings is a few misses of the processor's caches:
 * two bits of this table, 2 bytes an id, answer most of them.
 */
export class IdPresence {
  readonly #bits: Uint32Array;
  readonly #mask: number;

  constructor(ids: Iterable<string>, count: number) {
    const bits = 2 ** Math.max(10, Math.ceil(Math.log2(count * bitsPerId)));
    this.#bits = new Uint32Array(bits / 32);
    this.#mask = bits - 1;
    for (const id of ids) {
      const hash = idHash(id);
      this.#set(hash);
      this.#set(otherHash(hash));
    }
  }

  get bytes(): number {
    return this.#bits.byteLength;
  }

  /** `hash` is the id's, as `idHash` gives it. False where the id is not among them; one in fifty is true in vain. */
  mayHold(hash: number): boolean {
    return this.#has(hash) && this.#has(otherHash(hash));
  }

  #set(hash: number): void {
    const bit = hash & this.#mask;
    this.#bits[bit >>> 5] = (this.#bits[bit >>> 5] as number) | (1 << (bit & 31));
  }

  #has(hash: number): boolean {
    const bit = hash & this.#mask;
    return ((this.#bits[bit >>> 5] as number) & (1 << (bit & 31))) !== 0;
  }
}

const bitsPerId = 12;

/** FNV-1a over the code units, mixed once more: ids are short, and many differ in their last character alone. */
export function idHash(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  return mixed(hash);
}

function otherHash(hash: number): number {
  return mixed(hash ^ 0x5bd1e995);
}

function mixed(hash: number): number {
  const once = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}
