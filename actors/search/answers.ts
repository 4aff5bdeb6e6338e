/**
 * Answers as JSON text, written by hand: `meta` goes out as the bytes that came in, so that no number loses digits.
 */
import type { Temperature } from '../../protocol/document.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import { documentId, documentMeta, documentText, documentVector } from '../storage/document-batch.ts';
import { firstLineOf, linesAfterFirst, linesAround, type MatchPlace, snippetOf } from '../text/snippet.ts';
import { vectorJson } from '../vector/vector-json.ts';
import type { ScannedDocument } from './scan.ts';

export function formatMicros(micros: number): string {
  const second = Math.floor(micros / 1_000_000);
  return `${secondText(second)}.${String(Math.floor(micros % 1_000_000)).padStart(6, '0')}Z`;
}

/** Hot: making a Date for each document read cost as much as finding the document. Neighbours share their second. */
let lastSecond = Number.NaN;
let lastSecondText = '';
function secondText(second: number): string {
  if (second !== lastSecond) {
    lastSecondText = new Date(second * 1_000).toISOString().slice(0, 19);
    lastSecond = second;
  }
  return lastSecondText;
}

export function rawMetaOf(buffer: Buffer, offset: number): string {
  const meta = documentMeta(buffer, offset);
  return meta === null ? '{}' : meta.toString('utf8');
}

/** What hits show on request: lines around the match, the text, the vector, and all ranges that match. */
export type Shown = Pick<SearchRequest, 'include' | 'context'>;

/** A hit with nothing that has to be asked for. */
const bareHit: Shown = { context: 0 };

/** Whether hits hold nothing but what they hold by themselves. */
export function isBare({ include, context }: Shown): boolean {
  return include === undefined && context === 0;
}

/**
 * A hit as JSON. `matches` are the first of the document, or all that are shown; none where no text was asked for. `shown` adds what
 * hits do not hold by themselves.
 */
export function hitJson(
  document: ScannedDocument,
  matches: readonly MatchPlace[],
  shown: Shown = bareHit,
): string {
  const { buffer, offset } = document;
  const { include = [] } = shown;
  const text = include.includes('text') ? documentText(buffer, offset) : null;
  return (
    hitHead(document, matches, shown) +
    `${text === null ? '' : `,"text":${JSON.stringify(text.toString('utf8'))}`}` +
    hitTail(document, matches, shown)
  );
}

/** A hit with a long text: the JSON around the text, quotes and all, and the text as it lies where it was found. */
export interface LongHit {
  readonly head: Buffer;
  readonly text: Buffer;
  readonly tail: Buffer;
}

/** A hit that is written as `hitJson` would, its text escaped; null where no long text is included. */
export function longHit(
  document: ScannedDocument,
  matches: readonly MatchPlace[],
  shown: Shown,
): LongHit | null {
  if (shown.include?.includes('text') !== true) return null;
  const text = documentText(document.buffer, document.offset);
  if (text === null || text.length < longTextBytes) return null;
  return {
    head: Buffer.from(`${hitHead(document, matches, shown)},"text":"`),
    text,
    tail: Buffer.from(`"${hitTail(document, matches, shown)}`),
  };
}

/** A text of which no copy is made keeps its block in memory, which has 128 KB, and an answer holds room for three times its bytes. */
const longTextBytes = 48 * 1024;

/** The fields of a hit that stand before the text. */
function hitHead(document: ScannedDocument, matches: readonly MatchPlace[], { context }: Shown): string {
  const { buffer, offset } = document;
  const text = documentText(buffer, offset);
  const [match] = matches;
  const snippet = match === undefined || text === null ? firstLineOf(text) : snippetOf(text, match);
  const written = formatMicros(document.writtenAt);
  return (
    `{"id":${JSON.stringify(documentId(buffer, offset))},"match":${JSON.stringify(snippet.match)},` +
    `"line":${JSON.stringify(snippet.line)},"line_number":${snippet.lineNumber},` +
    `"start":${snippet.start},"end":${snippet.end},${context === 0 ? '' : contextFields(text, match, context)}"meta":${rawMetaOf(buffer, offset)},"written_at":"${written}"`
  );
}

/** The fields of a hit that stand behind the text, and its end. */
function hitTail(
  { buffer, offset }: ScannedDocument,
  matches: readonly MatchPlace[],
  { include = [] }: Shown,
): string {
  return (
    `${include.includes('vector') ? vectorField(documentVector(buffer, offset)) : ''}` +
    `${include.includes('matches') ? `,"matches":${matchesJson(matches)}` : ''}}`
  );
}

/**
 * The lines around a match as fields, with a comma behind them. Where nothing was searched for, the lines are those behind the
 * first one that is not blank.
 */
function contextFields(text: Buffer | null, match: MatchPlace | undefined, count: number): string {
  if (text === null) return '"before":[],"after":[],';
  const { before, after } =
    match === undefined
      ? { before: [], after: linesAfterFirst(text, count) }
      : linesAround(text, match, count);
  return `"before":${JSON.stringify(before)},"after":${JSON.stringify(after)},`;
}

/** The field of a vector, with the comma before it; nothing where there is no vector. */
export function vectorField(vector: Float32Array | null): string {
  return vector === null ? '' : `,"vector":${vectorJson(vector)}`;
}

function matchesJson(matches: readonly MatchPlace[]): string {
  return `[${matches.map(({ start, end, lineNumber }) => `{"start":${start},"end":${end},"line_number":${lineNumber}}`)}]`;
}

/** What every query answer reports of itself. */
export interface QueryFigures {
  readonly temperature: Temperature;
  readonly storeGets: number;
  readonly storeBytes: number;
  readonly cpuMs: number;
  readonly timedOut: boolean;
}

const rounded = (ms: number) => Math.round(ms * 1_000) / 1_000;

export function figuresJson(figures: QueryFigures): string {
  return (
    `"temperature":"${figures.temperature}","store_gets":${figures.storeGets},"store_bytes":${figures.storeBytes},` +
    `"cpu_ms":${rounded(figures.cpuMs)},"timed_out":${figures.timedOut}`
  );
}

export const tookJson = (ms: number): string => `"took_ms":${rounded(ms)}`;
