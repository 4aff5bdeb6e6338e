import { systemClock } from '../base/clock.ts';

const redrawMs = 100;
const barCharacters = 30;

/** One line that says how far something is, drawn over itself; on a terminal alone. */
export class ProgressBar {
  #shownAt = Number.NEGATIVE_INFINITY;

  /** `words` follow the bar and its percentage, which stand there where the `share` that is done, 0 to 1, is known. */
  show(words: string, share: number | null = null): void {
    if (process.stderr.isTTY !== true) return;
    const now = systemClock.monotonic();
    if (now - this.#shownAt < redrawMs && share !== 1) return;
    this.#shownAt = now;
    const bar = share === null ? '' : `${barOf(share)} ${Math.floor(share * 100)} % `;
    process.stderr.write(`\r\x1b[K${bar}${words}`);
  }

  clear(): void {
    if (process.stderr.isTTY === true) process.stderr.write('\r\x1b[K');
  }
}

function barOf(share: number): string {
  const full = Math.round(share * barCharacters);
  return `${'█'.repeat(full)}${'░'.repeat(barCharacters - full)}`;
}
