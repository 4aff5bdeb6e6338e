import { mcpInstructions, tools } from '../../../protocol/mcp-tools.ts';
import { interfaceVersion } from '../../../protocol/version.ts';
import { type Era, legacyVersions, modernVersions } from './protocol-era.ts';
import type { DiscoverResult, Implementation, InitializeResult } from './sdk-types.ts';

/** What the server says of itself and of its tools. All of it is made once, as JSON: it is asked for at each connection. */
const serverInfo: Implementation = { name: 'tidebase', title: 'Tidebase', version: interfaceVersion };
const capabilities = { tools: {} };
/** Tools change with the server's version and the credential's scope. */
const ttlMs = 300_000;

/** What each modern result has behind its own members. */
export const modernTail = `,"_meta":${JSON.stringify({ 'io.modelcontextprotocol/serverInfo': serverInfo })}`;

const definitions = [...tools.values()];
const listOf = (visible: typeof definitions) => `"tools":[${visible.map((tool) => tool.definition)}]`;
const lists = { all: listOf(definitions), reading: listOf(definitions.filter(({ reads }) => reads)) };
const legacy = { all: `{${lists.all}}`, reading: `{${lists.reading}}` };
const cached = `"ttlMs":${ttlMs},"cacheScope":"private"`;
const modernOf = (list: string) => `{"resultType":"complete",${list},${cached}${modernTail}}`;
const modern = { all: modernOf(lists.all), reading: modernOf(lists.reading) };

/** The result of `tools/list`. Who may only read sees the tools that read. */
export function toolListJson(era: Era, visible: 'all' | 'reading'): string {
  return (era === 'modern' ? modern : legacy)[visible];
}

const discovered = {
  resultType: 'complete',
  supportedVersions: [...modernVersions],
  capabilities,
  instructions: mcpInstructions,
  ttlMs,
  cacheScope: 'private',
  _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
} satisfies DiscoverResult;

export const discoverJson = JSON.stringify(discovered);

/** Answers the version that was asked for where we speak it, else our newest one of that era. */
export function initializeJson(asked: string | null): string {
  const protocolVersion = legacyVersions.find((each) => each === asked) ?? legacyVersions[0];
  const result = {
    protocolVersion,
    capabilities,
    serverInfo,
    instructions: mcpInstructions,
  } satisfies InitializeResult;
  return JSON.stringify(result);
}
