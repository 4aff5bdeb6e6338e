/** Random statements of our dialect, each with what DuckDB calls the same. */
import type { Chance } from '../simulation/chance.ts';

export interface Sql {
  readonly ours: string;
  readonly theirs: string;
}

export interface GeneratedQuery extends Sql {
  /** Whether rows come in one order alone. */
  readonly isOrdered: boolean;
}

const same = (text: string): Sql => ({ ours: text, theirs: text });

/** Both sides at once: `sql\`a = ${x}\``. */
function sql(strings: TemplateStringsArray, ...parts: readonly Sql[]): Sql {
  const join = (side: 'ours' | 'theirs') =>
    strings.reduce((text, string, at) => text + string + (parts[at]?.[side] ?? ''), '');
  return { ours: join('ours'), theirs: join('theirs') };
}

function list(items: readonly Sql[], separator = ', '): Sql {
  return {
    ours: items.map(({ ours }) => ours).join(separator),
    theirs: items.map(({ theirs }) => theirs).join(separator),
  };
}

const ints = ['a', 'b', 'wide'];
const floats = ['x', 'y'];
const texts = ['s', 't', 'rare', 'id'];
const strings = ["''", "'a'", "'ab'", "'A'", "'zz top'", "'größe'", "'it''s'", "'10'", "'a_c'"];
const likes = [
  "'%'",
  "''",
  "'a%'",
  "'%a'",
  "'%a%'",
  "'_'",
  "'a_'",
  "'%_y%'",
  "'a_c%'",
  "'%r_ß%'",
  "'x%y%'",
  "'_潮%' ",
  "'%潮_%'",
  "'a!%%' ESCAPE '!'",
  "'%!_c%' ESCAPE '!'",
  "'%0'",
];

const dates = ["'2000-02-27'", "'1969-02-28'", "'2024-02-26'"];
/** Times of whole days: DuckDB 1.5 lets NULL pass where a truncated time is compared by <> with one that no truncation gives. */
const times = ["'2024-01-02 00:00:00'", "'2024-01-01 00:00:00'", "'2024-01-04 00:00:00'"];

export class SqlGenerator {
  readonly #chance: Chance;
  /** Texts are matched there alone. */
  #inWhere = false;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  query(): GeneratedQuery {
    return this.#chance.happens(0.55) ? this.#grouped() : this.#plain();
  }

  /** For properties that need no oracle: a condition over a row. */
  condition(depth = 3): Sql {
    const chance = this.#chance;
    if (depth > 0 && chance.happens(0.4)) {
      const [left, right] = [this.condition(depth - 1), this.condition(depth - 1)];
      if (chance.happens(0.3)) return sql`NOT (${left})`;
      return chance.happens(0.5) ? sql`(${left} AND ${right})` : sql`(${left} OR ${right})`;
    }
    switch (chance.integer(0, this.#inWhere ? 10 : 9)) {
      case 0:
        return sql`${this.#int()} ${this.#comparison()} ${this.#int()}`;
      case 1:
        return sql`${this.#number()} ${this.#comparison()} ${this.#number()}`;
      case 2:
        return sql`${this.#text()} ${this.#comparison()} ${this.#text()}`;
      case 3:
        return sql`${this.#text()} ${same(chance.pick(['', 'NOT ']))}LIKE ${same(chance.pick(likes))}`;
      case 4:
        return sql`${this.#any()} IS ${same(chance.pick(['', 'NOT ']))}NULL`;
      case 5:
        return sql`${this.#int()} ${this.#in()} (${this.#literals(() => this.#intLiteral())})`;
      case 6:
        return sql`${this.#text()} ${this.#in()} (${this.#literals(() => same(chance.pick(strings)))})`;
      case 8:
        return sql`${this.#dated()} ${this.#comparison()} ${this.#dated()}`;
      case 9: {
        const [column, literals] = chance.pick([
          ['d', dates],
          ['w', times],
        ] as const);
        return sql`${same(column)} ${this.#in()} (${this.#literals(() => same(chance.pick(literals)))})`;
      }
      case 10:
        return this.#textMatch();
      default:
        return sql`${this.#number()} ${this.#in()} (${this.#literals(() => same(chance.pick(['0.5', '1.25', '2', '-3'])))})`;
    }
  }

  #textMatch(): Sql {
    const words = this.#chance.pick(['fence', 'LOG', 'tide', 'a.b', 'ide s', 'nowhere', '6']);
    if (this.#chance.happens(0.5))
      return {
        ours: `contains(text, '${words}')`,
        theirs: `contains(lower(text), '${words.toLowerCase()}')`,
      };
    const regex = this.#chance.pick(['^tide', 'Seg.*[1-3]$', '(?i)fence', 'a[.]b', 'lo+g|harb']);
    return { ours: `grep(text, '${regex}')`, theirs: `regexp_matches(text, '${regex}')` };
  }

  #plain(): GeneratedQuery {
    const chance = this.#chance;
    const items = Array.from({ length: chance.integer(1, 4) }, () => this.#any());
    const where = this.#where();
    const isOrdered = chance.happens(0.6);
    // The id makes it one order alone.
    const keys = Array.from({ length: chance.integer(0, 2) }, () => this.#orderKey(this.#key()));
    const order = isOrdered ? sql` ORDER BY ${list([...keys, same('id')])}${this.#limit()}` : same('');
    return { ...sql`SELECT ${list(items)} FROM docs${where}${order}`, isOrdered };
  }

  #grouped(): GeneratedQuery {
    const chance = this.#chance;
    const keys = Array.from({ length: chance.integer(0, 3) }, () => this.#key());
    const aggregates = Array.from({ length: chance.integer(1, 4) }, () => this.#aggregate());
    const items = [...keys.map((key, at) => sql`${key} AS ${same(`k${at}`)}`), ...aggregates];
    const group =
      keys.length === 0 ? same('') : sql` GROUP BY ${list(keys.map((key, at) => this.#groupKey(key, at)))}`;
    const having = chance.happens(0.25) ? sql` HAVING ${this.#having()}` : same('');
    const isOrdered = chance.happens(0.6);
    const all = items.map((_, at) => this.#orderKey(same(String(at + 1))));
    const order = isOrdered ? sql` ORDER BY ${list(all)}${this.#limit()}` : same('');
    return { ...sql`SELECT ${list(items)} FROM docs${this.#where()}${group}${having}${order}`, isOrdered };
  }

  #groupKey(key: Sql, at: number): Sql {
    return this.#chance.pick([same(`k${at}`), same(String(at + 1)), key]);
  }

  #having(): Sql {
    const chance = this.#chance;
    const first = sql`${this.#aggregate('int')} ${this.#comparison()} ${this.#intLiteral()}`;
    return chance.happens(0.3) ? sql`${first} OR COUNT(*) > ${same(String(chance.integer(0, 9)))}` : first;
  }

  #where(): Sql {
    if (this.#chance.happens(0.4)) return same('');
    this.#inWhere = true;
    const condition = this.condition();
    this.#inWhere = false;
    return sql` WHERE ${condition}`;
  }

  #limit(): Sql {
    const chance = this.#chance;
    if (chance.happens(0.5)) return same('');
    return same(
      ` LIMIT ${chance.integer(0, 12)}${chance.happens(0.4) ? ` OFFSET ${chance.integer(0, 20)}` : ''}`,
    );
  }

  #orderKey(key: Sql): Sql {
    const chance = this.#chance;
    return sql`${key}${same(chance.pick(['', ' ASC', ' DESC']))}${same(chance.pick(['', '', ' NULLS FIRST', ' NULLS LAST']))}`;
  }

  #aggregate(type?: 'int'): Sql {
    const chance = this.#chance;
    switch (chance.integer(0, type === 'int' ? 5 : 11)) {
      case 0:
        return same('COUNT(*)');
      case 1:
        return sql`COUNT(${this.#any(1)})`;
      case 2:
        return sql`COUNT(DISTINCT ${this.#any(1)})`;
      case 3:
        return sql`SUM(${this.#int(1)})`;
      case 4:
        return sql`MIN(${this.#int(1)})`;
      case 5:
        return sql`MAX(${this.#int(1)})`;
      case 6:
        return sql`SUM(${this.#number(1)})`;
      case 7:
        return sql`AVG(${this.#number(1)})`;
      case 8:
        return sql`MIN(${this.#text(1)})`;
      case 9:
        return chance.happens(0.5)
          ? sql`MAX(${this.#text(1)})`
          : sql`${same(chance.pick(['MIN', 'MAX']))}(${this.#dated('column')})`;
      case 10:
        return sql`SUM(DISTINCT ${same(chance.pick(['a', 'b', 'x', 'y']))})`;
      default:
        return sql`AVG(DISTINCT ${same(chance.pick(['a', 'b', 'x']))})`;
    }
  }

  /** A whole number would be a position. */
  #key(): Sql {
    const any = this.#any(1);
    return /^-?\d+$/u.test(any.ours) ? same('a') : any;
  }

  #any(depth = 2): Sql {
    const kind = this.#chance.weighted({ int: 3, number: 2, text: 3, time: 1, dated: 2 });
    if (kind === 'int') return this.#int(depth);
    if (kind === 'text') return this.#text(depth);
    if (kind === 'dated') return this.#dated('column');
    return kind === 'number' ? this.#number(depth) : this.#time();
  }

  #int(depth = 2): Sql {
    const chance = this.#chance;
    if (depth > 0 && chance.happens(0.35)) {
      switch (chance.integer(0, 4)) {
        case 0:
          return sql`(${this.#int(depth - 1)} ${same(chance.pick(['+', '-']))} ${this.#int(depth - 1)})`;
        case 1: {
          const text = this.#text(depth - 1);
          return { ours: `LENGTH(${text.ours})`, theirs: `strlen(${text.theirs})` };
        }
        case 2:
          return sql`CASE WHEN ${this.condition(0)} THEN ${this.#int(depth - 1)}${this.#else(() => this.#int(depth - 1))} END`;
        case 3:
          return chance.happens(0.5)
            ? same('EXTRACT(MINUTE FROM w)')
            : sql`COALESCE(${this.#int(depth - 1)}, ${this.#int(depth - 1)})`;
        default: {
          const seconds = same(chance.pick(['a', 'b']));
          return {
            ours: `EXTRACT(MINUTE FROM ${seconds.ours})`,
            theirs: `EXTRACT(MINUTE FROM make_timestamp(${seconds.theirs} * 1000000))`,
          };
        }
      }
    }
    return chance.happens(0.8) ? same(chance.pick(ints)) : this.#intLiteral();
  }

  /** A float. */
  #number(depth = 2): Sql {
    const chance = this.#chance;
    if (depth > 0 && chance.happens(0.3)) {
      switch (chance.integer(0, 2)) {
        case 0:
          return sql`(${this.#number(depth - 1)} ${same(chance.pick(['+', '-']))} ${same(chance.pick(['a', 'b', 'x', 'y']))})`;
        case 1:
          return sql`CASE WHEN ${this.condition(0)} THEN ${this.#number(depth - 1)}${this.#else(() => this.#number(depth - 1))} END`;
        default:
          return sql`COALESCE(${this.#number(depth - 1)}, ${this.#number(depth - 1)})`;
      }
    }
    if (chance.happens(0.85)) return same(chance.pick(floats));
    const value = chance.pick(['0.5', '-1.25', '2e0']);
    return { ours: value, theirs: `${value}::DOUBLE` };
  }

  #text(depth = 2): Sql {
    const chance = this.#chance;
    if (depth > 0 && chance.happens(0.3)) {
      switch (chance.integer(0, 2)) {
        case 0:
          return sql`CASE WHEN ${this.condition(0)} THEN ${this.#text(depth - 1)}${this.#else(() => this.#text(depth - 1))} END`;
        case 1:
          return sql`COALESCE(${this.#text(depth - 1)}, ${this.#text(depth - 1)})`;
        default: {
          const text = this.#text(depth - 1);
          const how = chance.pick(["'a', 'X'", "'^(.)', '<\\1>'", "'[0-9]+', ''", "'(a)(b)', '\\2\\1'"]);
          return {
            ours: `REGEXP_REPLACE(${text.ours}, ${how})`,
            theirs: `regexp_replace(${text.theirs}, ${how}, 'g')`,
          };
        }
      }
    }
    return chance.happens(0.85) ? same(chance.pick(texts)) : same(chance.pick(strings));
  }

  /** A date or time, or a text that is compared with one. */
  #dated(what?: 'column'): Sql {
    const chance = this.#chance;
    if (what === undefined && chance.happens(0.3)) return same(chance.pick(times));
    if (chance.happens(0.75)) return same(chance.pick(['d', 'w']));
    const unit = chance.pick(['minute', 'hour', 'day']);
    return { ours: `DATE_TRUNC('${unit}', w)`, theirs: `date_trunc('${unit}', w)` };
  }

  #time(): Sql {
    const unit = this.#chance.pick(['minute', 'hour', 'day']);
    const seconds = this.#chance.pick(['a', 'b']);
    return {
      ours: `DATE_TRUNC('${unit}', ${seconds})`,
      theirs: `strftime(date_trunc('${unit}', make_timestamp(${seconds} * 1000000)), '%Y-%m-%d %H:%M:%S')`,
    };
  }

  #else(value: () => Sql): Sql {
    return this.#chance.happens(0.7) ? sql` ELSE ${value()}` : same('');
  }

  #intLiteral(): Sql {
    return same(String(this.#chance.pick([0, 1, 2, -1, -2, 5, 100, 1_000_000])));
  }

  #literals(one: () => Sql): Sql {
    const items = Array.from({ length: this.#chance.integer(1, 4) }, one);
    if (this.#chance.happens(0.15)) items.push(same('NULL'));
    return list(items);
  }

  #in(): Sql {
    return same(this.#chance.pick(['IN', 'NOT IN']));
  }

  #comparison(): Sql {
    return same(this.#chance.pick(['=', '<>', '!=', '<', '<=', '>', '>=']));
  }
}
