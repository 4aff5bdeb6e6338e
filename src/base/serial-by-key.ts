import { Serial } from './serial.ts';

/** Runs work of one key one at a time, in the order in which it was given; that of different keys side by side. */
export class SerialByKey<K> {
  readonly #serials = new Map<K, Serial>();

  /** Work of the key that was given and has not ended. */
  waiting(key: K): number {
    return this.#serials.get(key)?.waiting ?? 0;
  }

  async run<T>(key: K, work: () => Promise<T>): Promise<T> {
    const serial = this.#serials.get(key) ?? new Serial();
    this.#serials.set(key, serial);
    try {
      return await serial.run(work);
    } finally {
      if (serial.waiting === 0) this.#serials.delete(key);
    }
  }
}
