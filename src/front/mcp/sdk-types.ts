/**
 * The door to the SDK of MCP, for its types alone: nothing of it runs in the server, so it is a dependency of development. Why the
 * envelope is ours is a decision in this folder's README; tests hold our constants and answers against the SDK's.
 */
import type {
  CallToolResult,
  DiscoverResult,
  Implementation,
  InitializeResult,
  ListToolsResult,
} from '@modelcontextprotocol/server';

export type { CallToolResult, DiscoverResult, Implementation, InitializeResult, ListToolsResult };
export type ProtocolVersions = readonly DiscoverResult['supportedVersions'][number][];
