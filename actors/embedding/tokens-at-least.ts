import { limits } from '../../protocol/limits.ts';

/**
 * So many tokens the built-in model surely counts in texts, before they are cut into any: for an allowance that they would pass
 * by far. English has a third more.
 *
 * Each word that begins with a small or large letter of ASCII, or a digit, has a token of its own: all of these are pieces of the
 * vocabulary, and no piece goes on behind a space. A letter with a mark behind it is another letter.
 */
export function tokensAtLeast(texts: readonly string[]): number {
  let tokens = 0;
  let characters = 0;
  for (const text of texts) {
    const beginning = text.slice(0, limits.embeddedTextBytesMax);
    tokens += beginning.match(wordBegins)?.length ?? 0;
    characters += beginning.length;
    if (characters >= charactersMax) break;
  }
  return tokens;
}

const wordBegins = /(?<!\S)[a-zA-Z0-9](?!\p{M})/gu;

/** Some 20 ms on an actor's thread. The model reads less than this in the time of a request, which then is too large. */
const charactersMax = 4_000_000;
