import type { Attack } from './attack.ts';
import { attacksOfBytes } from './attacks-of-bytes.ts';
import { attacksOfSql } from './attacks-of-sql.ts';
import { attacksOfTurns } from './attacks-of-turns.ts';

/** By name, in the order of the numbers. */
export const attackCatalogue: readonly Attack[] = [
  ...attacksOfSql,
  ...attacksOfBytes,
  ...attacksOfTurns,
].toSorted((a, b) => numberOf(a) - numberOf(b));

function numberOf({ name }: Attack): number {
  return Number(/^A(\d+)/.exec(name)?.[1] ?? Number.NaN);
}

/** By its whole name. */
export function attackNamed(name: string): Attack {
  const found = attackCatalogue.find((attack) => attack.name === name);
  if (found === undefined) throw new Error(`there is no attack ${name}`);
  return found;
}

/** Those of the names; `A1` means all its variants. */
export function attacksNamed(names: readonly string[]): readonly Attack[] {
  const isAsked = ({ name }: Attack, asked: string) => name === asked || name.startsWith(`${asked}-`);
  for (const asked of names) {
    if (!attackCatalogue.some((attack) => isAsked(attack, asked)))
      throw new Error(`there is no attack ${asked}: --list lists them`);
  }
  return attackCatalogue.filter((attack) => names.some((asked) => isAsked(attack, asked)));
}
