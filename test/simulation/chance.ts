import type { Random } from '../../src/base/random.ts';
import { seededRandom } from '../support/segments.ts';

/** Chance by a seed. Each purpose has a stream of its own, so that one more draw here changes nothing there. */
export class Chance {
  readonly #next: () => number;

  constructor(seed: number, stream: number) {
    this.#next = seededRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca6b));
  }

  /** 0 ≤ x < 1 */
  readonly fraction = (): number => this.#next();

  /** Whether something of this probability happens. */
  happens(probability: number): boolean {
    return this.#next() < probability;
  }

  /** An integer from `from` to `to`, both included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.#next() * (to - from + 1));
  }

  between(from: number, to: number): number {
    return from + this.#next() * (to - from);
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#next() * from.length)] as T;
  }

  /** By weights, which need not add up to anything. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const names = Object.keys(weights) as Name[];
    let left = this.#next() * names.reduce((sum, name) => sum + weights[name], 0);
    for (const name of names) {
      left -= weights[name];
      if (left < 0) return name;
    }
    return names[0] as Name;
  }
}

export function randomOf(chance: Chance): Random {
  return { bytes: (length) => Uint8Array.from({ length }, () => Math.floor(chance.fraction() * 256)) };
}
