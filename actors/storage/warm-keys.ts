import { createCipheriv } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs';
import type { Random } from '../../src/base/random.ts';

const keyBytes = 16;
/** A key is used once, so that its stream may begin at the same place each time. */
const firstBlock = Buffer.alloc(16);
const algorithm = 'aes-128-ctr';
const zeros = Buffer.alloc(keyBytes);
const readPieceBytes = 1024 * 1024;

/**
 * The keys of a warm cache's values: each value has a key of its own, and a key is used for one value. Forgetting a key is how
 * a value is erased, because LMDB leaves the bytes of what it removes in free pages and in the gaps of used ones.
 *
 * Keys lie in one file, 16 bytes each, named by their place in it: the first has the number 1. Zeros are a free place.
 * A forgotten key is overwritten where it lies. After a crash a place may belong to another value than an entry believes,
 * so what is opened with a key must be held against a checksum.
 */
export class WarmKeys {
  readonly #file: number;
  readonly #random: Random;
  readonly #free: number[] = [];
  /** Places that the file has, the free ones included. */
  #places: number;

  /** Throws where the file can't be opened or read. */
  constructor(path: string, random: Random) {
    this.#random = random;
    this.#file = openSync(path, 'a+', 0o600);
    closeSync(this.#file);
    this.#file = openSync(path, 'r+');
    this.#places = Math.ceil(fstatSync(this.#file).size / keyBytes);
    this.#findFree();
  }

  /** Keys that are in use, those that a crash left without a value among them. */
  get count(): number {
    return this.#places - this.#free.length;
  }

  /** A new key's number and what the bytes become under it. */
  seal(parts: readonly Uint8Array[]): { readonly number: number; readonly sealed: readonly Uint8Array[] } {
    const key = this.#random.bytes(keyBytes);
    const number = this.#free.pop() ?? ++this.#places;
    writeSync(this.#file, key, 0, keyBytes, placeOf(number));
    return { number, sealed: under(key, parts) };
  }

  /** The bytes that were sealed with this key; undefined where it was forgotten. */
  open(number: number, sealed: Uint8Array): Buffer | undefined {
    const key = Buffer.alloc(keyBytes);
    if (readSync(this.#file, key, 0, keyBytes, placeOf(number)) !== keyBytes || key.equals(zeros))
      return undefined;
    return under(key, [sealed])[0];
  }

  /** Forgets a key: from here on nobody can open what was sealed with it. */
  forget(number: number): void {
    if (number < 1 || number > this.#places) return;
    writeSync(this.#file, zeros, 0, keyBytes, placeOf(number));
    this.#free.push(number);
  }

  close(): void {
    closeSync(this.#file);
  }

  #findFree(): void {
    const piece = Buffer.alloc(readPieceBytes);
    for (let from = 0; from < this.#places * keyBytes; from += readPieceBytes) {
      const length = readSync(this.#file, piece, 0, readPieceBytes, from);
      for (let at = 0; at + keyBytes <= length; at += keyBytes)
        if (piece.compare(zeros, 0, keyBytes, at, at + keyBytes) === 0)
          this.#free.push((from + at) / keyBytes + 1);
    }
  }
}

function placeOf(number: number): number {
  return (number - 1) * keyBytes;
}

/** Sealing and opening are the same. */
function under(key: Uint8Array, parts: readonly Uint8Array[]): Buffer[] {
  const cipher = createCipheriv(algorithm, key, firstBlock);
  return parts.map((part) => cipher.update(part));
}
