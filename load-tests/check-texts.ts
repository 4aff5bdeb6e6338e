import type { Chance } from '../test/simulation/chance.ts';
import { type Asking, checkCase, listNewestFirst, type Subject } from './check-search.ts';
import { Connections, type MeasuredServer, restartMeasured } from './measured-server.ts';
import { piecesOf } from './plain-text.ts';
import { putTexts } from './put-texts.ts';
import { re2Oracle } from './re2-oracle.ts';
import type { TextCase } from './text-cases.ts';

/**
 * Texts in a real server against RE2 run over all of them: for each case the count, and every hit in its order with its
 * place and line, page by page. Most documents are in segments by then, some in a memtable above them; some were
 * replaced by a part of themselves, which moves them up, and some were deleted.
 */
export interface TextsCheck {
  readonly differences: readonly string[];
  readonly byKind: ReadonlyMap<string, KindTotals>;
}

export interface KindTotals {
  cases: number;
  /** Cases that match no document. */
  nothing: number;
  /** Documents, of all its cases. */
  matches: number;
  differentCases: number;
}

const inSegmentsShare = 0.8;
const replaceEvery = 13;
const deleteEvery = 29;
/** A case with more hits is asked for in larger pages: what is judged is that pages fit together, not their number. */
const pagesMax = 12;
const pageSizeMax = 1_000;
/** A page of few bytes holds one hit at least: cases with more hits would take too many of them. */
const hitsOfBoundedPages = 60;

export interface StoredTexts {
  readonly server: MeasuredServer;
  readonly namespace: string;
  /** The last written last. */
  readonly texts: ReadonlyMap<string, Buffer>;
}

/** Restarts the server, which moves what it holds into segments. */
export async function storeTexts(
  server: MeasuredServer,
  namespace: string,
  given: ReadonlyMap<string, Buffer>,
): Promise<StoredTexts> {
  const all = [...given];
  const first = all.slice(0, Math.floor(all.length * inSegmentsShare));
  await withClient(server, (client) => putTexts(client, namespace, first));
  const restarted = await restartMeasured(server);
  const replaced = first
    .filter((_, i) => i % replaceEvery === 0)
    .map(([id, text]) => [id, piecesOf(text, Math.ceil(text.length / 2) + 4)[0] ?? text] as const);
  const deleted = first.filter((_, i) => i % deleteEvery === 1).map(([id]) => id);
  const later = [...all.slice(first.length), ...replaced];
  await withClient(restarted, async (client) => {
    await putTexts(client, namespace, later);
    await client.post(`/v1/namespaces/${namespace}/delete`, Buffer.from(JSON.stringify({ ids: deleted })));
  });
  const texts = new Map(first);
  for (const [id, text] of later) {
    // Where it is replaced, it moves to the end.
    texts.delete(id);
    texts.set(id, text);
  }
  for (const id of deleted) texts.delete(id);
  return { server: restarted, namespace, texts };
}

async function withClient<T>(
  { process: server, key }: MeasuredServer,
  use: (client: Connections) => Promise<T>,
): Promise<T> {
  const client = new Connections(server.url, key, 1);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

/** `tell` hears of each case that is done. */
export async function checkTexts(
  { server, namespace, texts }: StoredTexts,
  cases: readonly TextCase[],
  chance: Chance,
  tell: (done: number) => void = () => {},
): Promise<TextsCheck> {
  return withClient(server, async (client) => {
    const newestFirst = [...texts.keys()].reverse();
    const subject: Subject = {
      client,
      namespace,
      newestFirst,
      textOf: (id) => texts.get(id) ?? Buffer.alloc(0),
    };
    const listed = await listNewestFirst(client, namespace);
    const differences =
      listed.join('\n') === newestFirst.join('\n') ? [] : ['the listing is not in the order of writing'];
    const oracle = re2Oracle(texts);
    const byKind = new Map<string, KindTotals>();
    for (const [i, asked] of cases.entries()) {
      const expected = (await oracle.matching(asked)).size;
      const found = await checkCase(subject, oracle, asked, askingOf(expected, i, chance)).then(
        (checked) => checked.differences,
        (refused: unknown) => [String(refused)],
      );
      differences.push(...found.map((each) => `${JSON.stringify(asked.query)} (${asked.kind}): ${each}`));
      addTotals(byKind, asked.kind, { matches: expected, isDifferent: found.length > 0 });
      tell(i + 1);
    }
    return { differences, byKind };
  });
}

function askingOf(expected: number, i: number, chance: Chance): Asking {
  const pageSize = Math.max(chance.integer(1, 40), Math.ceil(expected / pagesMax));
  const asking = {
    hitsMax: Number.POSITIVE_INFINITY,
    pageSize: Math.min(pageSize, pageSizeMax),
    viaGet: i % 2 === 1,
  };
  const boundsBytes = expected < hitsOfBoundedPages && chance.happens(0.2);
  return boundsBytes ? { ...asking, bytesMax: chance.integer(1_024, 20_000) } : asking;
}

function addTotals(
  byKind: Map<string, KindTotals>,
  kind: string,
  found: { readonly matches: number; readonly isDifferent: boolean },
): void {
  const totals = byKind.get(kind) ?? { cases: 0, nothing: 0, matches: 0, differentCases: 0 };
  totals.cases++;
  totals.matches += found.matches;
  if (found.matches === 0) totals.nothing++;
  if (found.isDifferent) totals.differentCases++;
  byKind.set(kind, totals);
}
