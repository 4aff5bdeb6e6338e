/**
 * The rate-limit headers of an answer. Every answer carries them, so the lists are made once and shared: making five
 * strings and six arrays for each answer would cost more than admission itself.
 */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What a client is told where nothing is limited: the headers promise a number. */
export const unlimitedShown = 1_000_000_000;
/** Lists are kept for limits up to the largest of the built-in plans; past it they are made each time. */
export const headerLimitKeptMax = 1_000;
/** Lists kept, at about 600 bytes each: all values of the plans' limits and of a few keys' own. */
export const headerListsMax = 20_000;

const windowSeconds = 1;
const listsByLimit = new Map<number, (HeaderList | undefined)[]>();
let listsKept = 0;

const unlimited = makeHeaders(unlimitedShown, unlimitedShown);

/** `remaining` is a whole number from 0 to `limit`; a limit of null is none. */
export function rateLimitHeaders(limit: number | null, remaining: number): HeaderList {
  if (limit === null) return unlimited;
  return listsByLimit.get(limit)?.[remaining] ?? keep(limit, remaining, makeHeaders(limit, remaining));
}

function keep(limit: number, remaining: number, headers: HeaderList): HeaderList {
  if (listsKept >= headerListsMax || limit > headerLimitKeptMax) return headers;
  listsKept += 1;
  const lists = listsByLimit.get(limit) ?? new Array<HeaderList | undefined>(limit + 1);
  lists[remaining] = headers;
  listsByLimit.set(limit, lists);
  return headers;
}

function makeHeaders(limit: number, remaining: number): HeaderList {
  return [
    ['RateLimit-Limit', String(limit)],
    ['RateLimit-Remaining', String(remaining)],
    // Windows are one second long, so this rounded up is always the same.
    ['RateLimit-Reset', String(windowSeconds)],
    ['RateLimit-Policy', `${limit};w=${windowSeconds}`],
    ['RateLimit', `limit=${limit}, remaining=${remaining}, reset=${windowSeconds}`],
  ];
}
