import { type Filter, filterMatches } from '../../protocol/filter.ts';
import { limits } from '../../protocol/limits.ts';
import { type JsonObject, parseJson } from '../../src/base/json.ts';
import { documentMeta, documentText } from '../storage/document-batch.ts';
import type { Found, Judge, Judged, WantedMatches } from '../text/judge.ts';

/** What a query asks of a document: its filter, which is cheap, before its text, which is not. */
export interface DocumentTest {
  readonly filter: Filter | null;
  readonly judge: Judge | null;
}

export interface DocumentInBuffer {
  readonly buffer: Buffer;
  readonly offset: number;
  /** The parts of a large text to look at, as in `ScannedDocument`. */
  readonly parts?: readonly number[] | null;
  /** Whether columns have said that the document passes the filter: then its meta is not looked at. */
  readonly passes?: boolean;
}

const noMeta: JsonObject = {};
const nothingWanted: Found = [];

/** The matches that were wanted; none where no text is asked for. Null where the document does not pass. */
export function findInDocument(
  test: DocumentTest,
  { buffer, offset, parts = null, passes = false }: DocumentInBuffer,
  wanted: WantedMatches,
): Judged {
  if (!passes && !passesFilter(test.filter, { buffer, offset })) return null;
  if (test.judge === null) return nothingWanted;
  const text = documentText(buffer, offset);
  return text === null ? null : test.judge.find(text, wanted, parts);
}

export function passesFilter(filter: Filter | null, { buffer, offset }: DocumentInBuffer): boolean {
  return filter === null || filterMatches(filter, metaOf(buffer, offset));
}

function metaOf(buffer: Buffer, offset: number): JsonObject {
  const raw = documentMeta(buffer, offset);
  return raw === null ? noMeta : (parseJson(raw, { depthMax: limits.jsonDepthMax }) as JsonObject);
}
