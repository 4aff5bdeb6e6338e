/** Sets of code points as ascending ranges; the operations that character classes need. */
import { foldedPairs } from './fold.ts';
import type { Ranges } from './regex-syntax.ts';

const codePointMax = 0x10ffff;

/** Any ranges, in any order and overlapping, put in order. */
export function rangesOf(pairs: readonly (readonly [first: number, last: number])[]): Ranges {
  const ranges: number[] = [];
  for (const [first, last] of pairs.toSorted(([a], [b]) => a - b)) {
    const end = ranges.at(-1);
    if (end === undefined || first > end + 1) ranges.push(first, last);
    else if (last > end) ranges[ranges.length - 1] = last;
  }
  return ranges;
}

export function unionOf(a: Ranges, b: Ranges): Ranges {
  return rangesOf([...pairsOf(a), ...pairsOf(b)]);
}

/** All code points that are not in the ranges. */
export function complementOf(ranges: Ranges): Ranges {
  const rest: number[] = [];
  let next = 0;
  for (const [first, last] of pairsOf(ranges)) {
    if (first > next) rest.push(next, first - 1);
    next = last + 1;
  }
  if (next <= codePointMax) rest.push(next, codePointMax);
  return rest;
}

/** The ranges and whatever RE2 takes for the same under (?i). */
export function withOrbits(ranges: Ranges): Ranges {
  const members = sizeOf(ranges) <= foldedPairs.length ? orbitsOfEach(ranges) : orbitsOfMany(ranges);
  if (members.length === 0) return ranges;
  return unionOf(ranges, rangesOf(members.map((codePoint) => [codePoint, codePoint] as const)));
}

/** The orbit of each code point that has company in its own. */
const orbits: ReadonlyMap<number, readonly number[]> = orbitsByMember();

function orbitsByMember(): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>();
  for (const [codePoint, representative] of foldedPairs) {
    const orbit = found.get(representative) ?? [representative];
    orbit.push(codePoint);
    found.set(representative, orbit);
    found.set(codePoint, orbit);
  }
  return found;
}

/** The code points that RE2 takes for this one under (?i), itself among them. */
export function orbitOf(codePoint: number): readonly number[] {
  return orbits.get(codePoint) ?? [codePoint];
}

function orbitsOfEach(ranges: Ranges): number[] {
  const members: number[] = [];
  for (const [first, last] of pairsOf(ranges)) {
    for (let codePoint = first; codePoint <= last; codePoint++)
      members.push(...(orbits.get(codePoint) ?? []));
  }
  return members;
}

/** Members of all orbits, ascending: the ranges of a large class are compared with them in one pass. */
const orbitMembers = Uint32Array.from(orbits.keys()).sort();

/** Members that the ranges lack of the orbits of which they have others; a pattern may have sixty such classes. */
function orbitsOfMany(ranges: Ranges): number[] {
  const present = new Set<readonly number[]>();
  const absent: number[] = [];
  let at = 0;
  for (const member of orbitMembers) {
    while (at < ranges.length && (ranges[at + 1] as number) < member) at += 2;
    const isMember = at < ranges.length && (ranges[at] as number) <= member;
    if (isMember) present.add(orbitOf(member));
    else absent.push(member);
  }
  return absent.filter((member) => present.has(orbitOf(member)));
}

export function pairsOf(ranges: Ranges): (readonly [first: number, last: number])[] {
  return Array.from({ length: ranges.length / 2 }, (_, at) => [ranges[2 * at] ?? 0, ranges[2 * at + 1] ?? 0]);
}

/** How many code points the ranges hold. */
export function sizeOf(ranges: Ranges): number {
  return pairsOf(ranges).reduce((size, [first, last]) => size + last - first + 1, 0);
}

export const lineFeed = 0x0a;

export function hasLineFeed(ranges: Ranges): boolean {
  return pairsOf(ranges).some(([first, last]) => first <= lineFeed && last >= lineFeed);
}
