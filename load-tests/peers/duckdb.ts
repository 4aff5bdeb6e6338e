import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { Oracle } from '../../test/support/duckdb.ts';
import { temporaryFolder } from '../server.ts';
import { rowOf } from '../vector-set.ts';
import type { Peer, Question } from './peer.ts';
import { nearestWanted } from './peer-corpus.ts';

const threads = 2;
const rowsAtOnce = 5_000;

export const duckdb: Peer = {
  name: 'DuckDB',
  about: `in this process, ${threads} threads, no index`,
  async open({ rows, file, vectors }) {
    const oracle = await Oracle.open(threads);
    const { length: dims } = rowOf(vectors, 0);
    const vectorFile = join(temporaryFolder(), 'vectors.ndjson');
    for (let from = 0; from < rows.length; from += rowsAtOnce) {
      const lines = rows
        .slice(from, from + rowsAtOnce)
        .map(({ id }, at) => `${JSON.stringify({ id, v: [...rowOf(vectors, from + at)] })}\n`);
      appendFileSync(vectorFile, lines.join(''));
    }
    await oracle.rows(
      `CREATE TABLE docs AS SELECT id, text, level, host, status, took_ms FROM read_json_auto('${file}')`,
    );
    await oracle.rows(
      `CREATE TABLE vectors AS SELECT id, v::FLOAT[${dims}] AS v FROM read_json('${vectorFile}', columns = {id: 'VARCHAR', v: 'FLOAT[]'})`,
    );
    const [[version] = []] = await oracle.rows('SELECT version()');
    return {
      version: String(version),
      kinds: ['rare', 'word', 'regex', 'filter', 'both', 'groups', 'nearest'],
      async ask({ kind, text, regex, columns, vector }: Question) {
        if (kind === 'groups')
          return (await oracle.rows('SELECT host, COUNT(*) FROM docs GROUP BY host'))
            .map((row) => row.join(' '))
            .sort();
        if (vector !== undefined) {
          const near = `array_cosine_distance(v, [${vector.join(',')}]::FLOAT[${dims}])`;
          const found = await oracle.rows(`SELECT id FROM vectors ORDER BY ${near} LIMIT ${nearestWanted}`);
          return found.map(([id]) => String(id));
        }
        const wanted = conditionsOf(
          { text, regex, columns },
          {
            contains: (value) => `contains(text, ${value})`,
            matches: (value) => `regexp_matches(text, ${value})`,
          },
        );
        const [[count] = []] = await oracle.rows(`SELECT COUNT(*) FROM docs WHERE ${wanted}`);
        return Number(count);
      },
      close: async () => oracle.close(),
    };
  },
};

export interface Words {
  readonly contains: (value: string) => string;
  readonly matches: (value: string) => string;
}

/** A question's conditions in SQL; of text as the program says them. */
export function conditionsOf(
  {
    text,
    regex,
    columns = {},
  }:
    | Partial<Pick<Question, 'text' | 'regex' | 'columns'>>
    | { text: string | undefined; regex: string | undefined; columns: Question['columns'] },
  { contains, matches }: Words,
): string {
  return [
    ...(text === undefined ? [] : [contains(quotedSql(text))]),
    ...(regex === undefined ? [] : [matches(quotedSql(regex))]),
    ...Object.entries(columns).map(
      ([name, value]) => `${name} = ${typeof value === 'number' ? value : quotedSql(value)}`,
    ),
  ].join(' AND ');
}

const quotedSql = (text: string) => `'${text.replaceAll("'", "''")}'`;
