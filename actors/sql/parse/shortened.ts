const shownCharactersMax = 40;

/** Quotes a text of the user's in an error sentence, without the rest of a long one. */
export function shortened(text: string): string {
  return JSON.stringify(text.length > shownCharactersMax ? `${text.slice(0, shownCharactersMax)}…` : text);
}
