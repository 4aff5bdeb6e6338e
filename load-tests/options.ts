/** What a person gives a program of figures on its command line: `--name=value`. */
export function textOption(name: string): string | null {
  const start = `--${name}=`;
  return process.argv.find((word) => word.startsWith(start))?.slice(start.length) ?? null;
}

/** Throws for anything but a number over 0. */
export function numberOption(name: string, otherwise: number): number {
  const given = textOption(name);
  if (given === null) return otherwise;
  const value = Number(given);
  if (!(value > 0)) throw new Error(`--${name} wants a number over 0, not ${given}`);
  return value;
}

/** For what is drawn by chance: the seed that is given, else a new one. Whoever asks prints it. */
export function seedOption(): number {
  return Math.floor(numberOption('seed', 1 + Math.random() * 2 ** 31));
}
