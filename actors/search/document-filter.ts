import { type Filter, filterMatches } from '../../protocol/filter.ts';
import { limits } from '../../protocol/limits.ts';
import { type JsonObject, parseJson } from '../../src/base/json.ts';
import { documentMeta, documentText } from '../storage/document-batch.ts';
import type { Matcher } from '../text/regex.ts';

/** What a query asks of a document: its filter, which is cheap, before its text, which is not. */
export interface DocumentTest {
  readonly filter: Filter | null;
  readonly matcher: Matcher | null;
}

const noMeta: JsonObject = {};

export function documentPasses(test: DocumentTest, buffer: Buffer, offset: number): boolean {
  if (test.filter !== null && !filterMatches(test.filter, metaOf(buffer, offset))) return false;
  if (test.matcher === null) return true;
  const text = documentText(buffer, offset);
  return text !== null && test.matcher.test(text);
}

function metaOf(buffer: Buffer, offset: number): JsonObject {
  const raw = documentMeta(buffer, offset);
  return raw === null ? noMeta : (parseJson(raw, { depthMax: limits.jsonDepthMax }) as JsonObject);
}
