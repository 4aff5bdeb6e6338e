import { Chance } from '../test/simulation/chance.ts';

/**
 * Rows shaped like the hits of a web-analytics table: users that come again and again, 64-bit ids over 2^53, mostly empty
 * search phrases, long and mostly distinct addresses, small codes, times within a month. By a seed.
 */
export interface Hit {
  readonly user: bigint;
  readonly region: number;
  readonly phrase: string;
  readonly url: string;
  readonly width: number;
  readonly engine: number;
  readonly time: number;
  readonly refresh: number;
  readonly hash: bigint;
}

export const hitColumns = {
  user: 'BIGINT',
  region: 'BIGINT',
  phrase: 'VARCHAR',
  url: 'VARCHAR',
  width: 'BIGINT',
  engine: 'BIGINT',
  time: 'BIGINT',
  refresh: 'BIGINT',
  hash: 'BIGINT',
} as const satisfies Record<keyof Hit, string>;

const monthStart = 1_372_636_800;
const monthSeconds = 31 * 86_400;
const words =
  'tide harbour fence map flight cheap buy news weather photo film price car rent house recipe'.split(' ');
const hosts = ['example.org', 'tides.example', 'shop.example.net', 'news.example.com'];

export class Hits {
  readonly #chance: Chance;

  constructor(seed: number) {
    this.#chance = new Chance(seed, 0);
  }

  next(): Hit {
    const chance = this.#chance;
    // Few come often: the cube of an even draw.
    const skewed = (count: number) => Math.floor(count * chance.fraction() ** 3);
    const user = 435_090_932_899_640_449n + BigInt(skewed(150_000)) * 1_000_003n;
    const phrase = chance.happens(0.87) ? '' : this.#phrase(skewed(40_000));
    const page = skewed(300_000);
    return {
      user,
      region: skewed(5_000),
      phrase,
      url: `https://${hosts[page % hosts.length]}/${words[page % words.length]}/${page}?ref=${skewed(50)}`,
      width: chance.pick([0, 1024, 1280, 1366, 1440, 1638, 1920]),
      engine: chance.happens(0.7) ? 0 : chance.integer(1, 60),
      time: monthStart + Math.floor(chance.fraction() * monthSeconds),
      refresh: chance.happens(0.1) ? 1 : 0,
      hash: BigInt(skewed(200_000)) * 17_592_186_044_417n - 1_000n,
    };
  }

  #phrase(number: number): string {
    const word = (at: number) => words[at % words.length] as string;
    return `${word(number)} ${word(number >> 4)} ${word(number >> 8)} ${number % 97}`;
  }
}

/** Of a meta, and the CSV line that DuckDB reads. */
export function metaOfHit(hit: Hit): string {
  const { user, region, phrase, url, width, engine, time, refresh, hash } = hit;
  return (
    `{"user":${user},"region":${region},"phrase":${JSON.stringify(phrase)},"url":${JSON.stringify(url)},` +
    `"width":${width},"engine":${engine},"time":${time},"refresh":${refresh},"hash":${hash}}`
  );
}

export function csvOfHit(hit: Hit): string {
  const { user, region, phrase, url, width, engine, time, refresh, hash } = hit;
  return `${user},${region},"${phrase}","${url}",${width},${engine},${time},${refresh},${hash}\n`;
}
