import assert from 'node:assert/strict';
import { filesBelow, readIfThere, sizeIfThere } from './living-folder.ts';
import type { ServerProcess } from './server-process.ts';

/** Secrets that a server has issued, or was sent: none of them may stand in what it logs, prints, audits or stores. */
export class IssuedSecrets {
  readonly #secrets: string[] = [];

  push(...secrets: readonly string[]): void {
    for (const secret of secrets) assert.ok(secret.length >= 8, 'it is one');
    this.#secrets.push(...secrets);
  }

  /** To be called when the server has ended: then all that it wrote is there. */
  assertNowhere({ output, errors }: ServerProcess, folder: string): void {
    assert.ok(this.#secrets.length > 0);
    const texts = [
      output,
      errors,
      ...smallFilesBelow(folder).map((file) => (readIfThere(file) ?? Buffer.alloc(0)).toString('latin1')),
    ];
    for (const secret of this.#secrets) {
      // The part that nobody can guess, of tokens, counts as well.
      const parts = [secret, secret.slice(-56, -8)].filter(({ length }) => length >= 8);
      const at = texts.findIndex((text) => parts.some((part) => text.includes(part)));
      assert.equal(at, -1, 'a secret is in a log or a file');
    }
  }
}

/** Files of less than 1 MB, in all folders below. */
export function smallFilesBelow(path: string): string[] {
  return filesBelow(path).filter((name) => sizeIfThere(name) < 1_000_000);
}
