/**
 * What the server says of itself and of its tools, as the bytes of JSON. All of it is made once: it is asked for at each connection,
 * and the list has 27 KB, which took three times as long to send when it was encoded each time.
 */
import { limits } from '../../../protocol/limits.ts';
import { mcpInstructions, tools } from '../../../protocol/mcp-tools.ts';
import { interfaceVersion } from '../../../protocol/version.ts';
import { LruMap } from '../../base/lru.ts';
import { type AnswerParts, resultParts } from './json-rpc.ts';
import { type Era, legacyVersions, modernVersions } from './protocol-era.ts';
import type { DiscoverResult, Implementation, InitializeResult } from './sdk-types.ts';

const serverInfo: Implementation = { name: 'tidebase', title: 'Tidebase', version: interfaceVersion };
const capabilities = { tools: {} };
/** Tools change with the server's version and the credential's scope. */
const ttlMs = 300_000;

/** What each modern result has behind its own members. */
export const modernTail = `,"_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': serverInfo })}`;

const definitions = [...tools.values()];
const listOf = (visible: typeof definitions) => `"tools":[${visible.map((tool) => tool.definition)}]`;
const lists = { all: listOf(definitions), reading: listOf(definitions.filter(({ reads }) => reads)) };
const legacyOf = (list: string) => Buffer.from(`{${list}}`);
const legacy = { all: legacyOf(lists.all), reading: legacyOf(lists.reading) };
const cached = `"ttlMs":${ttlMs},"cacheScope":"private"`;
const modernOf = (list: string) => Buffer.from(`{"resultType":"complete",${list},${cached}${modernTail}}`);
const modern = { all: modernOf(lists.all), reading: modernOf(lists.reading) };

/**
 * Answers to `tools/list`, kept whole by the ids of their messages: clients ask once a connection and count from 0 or 1, so that
 * a few ids are nearly all, and the list is not copied for them.
 */
export class ToolLists {
  readonly #kept = new LruMap<string, AnswerParts>(limits.toolListsKept);

  /** Who may only read sees the tools that read. `id` is JSON. The answer is not to be changed. */
  answer(id: string, era: Era, visible: 'all' | 'reading'): AnswerParts {
    const key = `${era} ${visible} ${id}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const parts = resultParts(id, [(era === 'modern' ? modern : legacy)[visible]]);
    if (id.length > idLengthMax) return parts;
    const whole = [Buffer.concat(parts)];
    this.#kept.set(key, whole);
    return whole;
  }
}

/** Longer ids are no counters. */
const idLengthMax = 16;

const discovered = {
  resultType: 'complete',
  supportedVersions: [...modernVersions],
  capabilities,
  instructions: mcpInstructions,
  ttlMs,
  cacheScope: 'private',
  _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
} satisfies DiscoverResult;

export const discoverResult: Uint8Array = Buffer.from(JSON.stringify(discovered));

/** Answers the version that was asked for where we speak it, else our newest one of that era. */
export function initializeResult(asked: string | null): Uint8Array {
  const protocolVersion = legacyVersions.find((each) => each === asked) ?? legacyVersions[0];
  const result = {
    protocolVersion,
    capabilities,
    serverInfo,
    instructions: mcpInstructions,
  } satisfies InitializeResult;
  return Buffer.from(JSON.stringify(result));
}
