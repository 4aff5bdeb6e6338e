import type { CountAnswer, Hit, SearchAnswer } from '../protocol/search.ts';
import type { SqlAnswer } from '../protocol/sql.ts';
import type { Question } from './agent-questions.ts';

/**
 * How an agent answers each kind of question, by tool calls alone and from what they answer: it knows the tools' descriptions, C, and
 * nothing of the files. Each question is a conversation of its own, so each begins with `list_namespaces`, and each that uses
 * SQL asks for the columns first, as the descriptions advise.
 */
export type CallTool = (name: string, args: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** A conversation about the one namespace that there is. */
interface Talk {
  readonly call: CallTool;
  readonly namespace: string;
}

export async function solve(call: CallTool, question: Question): Promise<string> {
  const { namespaces } = (await call('list_namespaces', {})) as {
    readonly namespaces: readonly { readonly name: string }[];
  };
  const talk = { call, namespace: namespaces[0]?.name ?? '' };
  switch (question.kind) {
    case 'definition': {
      const { id, line_number } = await findDefinition(talk, question.of);
      return `${id}:${line_number}`;
    }
    case 'body': {
      const { id, line_number } = await findDefinition(talk, question.of);
      return readTo(talk, id, line_number, '}');
    }
    case 'struct': {
      const [hit] = await search(talk, `(?m)^struct ${question.of} \\{`);
      return `${hit?.id}:${hit?.line_number}`;
    }
    case 'macro': {
      const [hit] = await search(talk, `(?m)^#define\\s+${question.of}\\b`);
      return (hit?.line.split(question.of)[1] ?? '').replace(/\/\*.*$/, '').trim();
    }
    case 'depends': {
      const [hit] = await search(talk, `(?m)^config ${question.of}$`, { context: 10 });
      return (
        (hit?.after ?? []).map((line) => line.trim()).find((line) => line.startsWith('depends on')) ?? ''
      );
    }
    case 'files-with': {
      const asked = question.words.map((word) => `contains(text, '${word}')`);
      const where = [...asked, ...(question.folder === undefined ? [] : [`id LIKE '${question.folder}/%'`])];
      const rows = await sql(talk, `SELECT id FROM docs WHERE ${where.join(' AND ')} ORDER BY id`);
      return rows
        .map(([id]) => String(id))
        .toSorted()
        .join('\n');
    }
    case 'files-in':
      return oneOf(await sql(talk, `SELECT COUNT(*) FROM docs WHERE id LIKE '${question.folder}/%'`));
    case 'lines':
      return readLines(talk, question.file, question.from, question.to);
    case 'fullest-folder': {
      const weight = question.by === 'files' ? 'COUNT(*)' : 'SUM(size)';
      return oneOf(
        await sql(
          talk,
          `SELECT REGEXP_REPLACE(id, '/[^/]*$', '') AS folder, ${weight} AS n FROM docs GROUP BY folder ORDER BY n DESC LIMIT 3`,
        ),
      );
    }
    case 'count': {
      const { pattern, isRegex = false } = question;
      const args = { namespace: talk.namespace, query: pattern, regex: isRegex, limit: 0 };
      return String(((await call('count', args)) as CountAnswer).count);
    }
    case 'largest':
      return oneOf(
        await sql(
          talk,
          `SELECT id, size FROM docs WHERE extension = '${question.extension}' ORDER BY size DESC LIMIT 1`,
        ),
      );
    case 'average-size':
      return String(
        Math.round(
          Number(
            oneOf(await sql(talk, `SELECT AVG(size) FROM docs WHERE extension = '${question.extension}'`)),
          ),
        ),
      );
    case 'extensions': {
      const rows = await sql(talk, 'SELECT extension, COUNT(*) FROM docs GROUP BY extension');
      return rows
        .map(([extension, n]) => `${extension} ${n}`)
        .toSorted()
        .join('\n');
    }
    case 'function-of': {
      const [hit] = await search(talk, question.message, { regex: false });
      return functionAbove(talk, hit?.id ?? '', hit?.line_number ?? 1);
    }
    case 'includes':
      return (await readLines(talk, question.file, 1, 100))
        .split('\n')
        .filter((line) => line.startsWith('#include'))
        .join('\n');
  }
}

async function search({ call, namespace }: Talk, query: string, more: object = {}): Promise<readonly Hit[]> {
  const answer = (await call('search', {
    namespace,
    query,
    regex: true,
    limit: 10,
    ...more,
  })) as SearchAnswer;
  return answer.hits;
}

/** All rows of a statement, page by page. */
async function sql({ call, namespace }: Talk, statement: string): Promise<SqlAnswer['rows']> {
  await call('sql_query', { namespace, sql: 'SHOW COLUMNS' });
  const rows: SqlAnswer['rows'][number][] = [];
  let cursor: string | undefined;
  do {
    const page = (await call('sql_query', {
      namespace,
      sql: statement,
      ...(cursor === undefined ? {} : { cursor }),
    })) as SqlAnswer;
    rows.push(...page.rows);
    cursor = page.next;
  } while (cursor !== undefined && cursor !== '');
  return rows;
}

const oneOf = (rows: SqlAnswer['rows']) => String(rows[0]?.[0] ?? '');

/** In C files first: a header that only declares it is found as often. Then in headers, for functions that are inline. */
async function findDefinition(talk: Talk, name: string): Promise<Hit> {
  const pattern = `(?m)^[A-Za-z_].*\\b${name}\\(`;
  for (const extension of ['c', 'h']) {
    const hits = await search(talk, pattern, { filter: { extension }, context: 6 });
    const found = hits.find(({ line, after = [] }) => /[;{]/.exec([line, ...after].join('\n'))?.[0] === '{');
    if (found !== undefined) return found;
  }
  throw new Error(`no definition of ${name} is found`);
}

interface Part {
  readonly text: string;
  readonly lines?: string;
  readonly total_lines?: number;
}

/** Lines of a document, asked for again from where an answer was cut. */
async function readLines({ call, namespace }: Talk, id: string, from: number, to: number): Promise<string> {
  let text = '';
  for (let next = from; next <= to; ) {
    const part = (await call('get_document', { namespace, id, lines: `${next}-${to}` })) as Part;
    text += part.text;
    const last = Number(part.lines?.split('-').at(-1) ?? to);
    if (last >= Math.min(to, part.total_lines ?? to)) break;
    next = last + 1;
  }
  return text.replace(/\n$/, '');
}

async function readTo(talk: Talk, id: string, from: number, end: string): Promise<string> {
  const lines = (await readLines(talk, id, from, from + 60)).split('\n');
  return lines.slice(0, lines.indexOf(end) + 1).join('\n');
}

/** Reads upwards from a line until the head of a function is seen. */
async function functionAbove(talk: Talk, id: string, line: number): Promise<string> {
  for (let to = line; to > 0; to -= 80) {
    const above = await readLines(talk, id, Math.max(1, to - 79), to);
    const heads = above.split('\n').filter((each) => /^[A-Za-z_].*\(/.test(each) && !each.endsWith(';'));
    const name = /(\w+)\(/.exec(heads.at(-1) ?? '')?.[1];
    if (name !== undefined) return name;
  }
  return '';
}
