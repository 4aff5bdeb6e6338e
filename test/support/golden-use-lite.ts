import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './repository.ts';

/** What the published tokenizer and model made of some texts; `note` in the file says how it was recorded. */
export interface GoldenUseLite {
  readonly note: string;
  readonly tokens: readonly { readonly text: string; readonly ids: readonly number[] }[];
  readonly vectors: readonly { readonly text: string; readonly vector: Float32Array }[];
}

export function goldenUseLite(): GoldenUseLite {
  const file = join(repositoryRoot(), 'test/golden/use-lite.json');
  const golden = JSON.parse(readFileSync(file, 'utf8')) as GoldenUseLite & {
    readonly vectors: readonly { readonly text: string; readonly vector: string }[];
  };
  return {
    ...golden,
    vectors: golden.vectors.map(({ text, vector }) => ({
      text,
      vector: new Float32Array(Uint8Array.from(Buffer.from(vector as unknown as string, 'base64')).buffer),
    })),
  };
}
