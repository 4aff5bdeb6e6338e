import { modernRequest } from '../../../test/support/mcp-calls.ts';
import type { LoopRequest } from '../../request-loop.ts';
import { importLogRows, logNamespace, writeLogRows } from '../log-rows.ts';
import { throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

export const mcpCalls: Scenario = {
  name: 'mcp-calls',
  about: 'The tool search of `POST /mcp`, which finds one log line by its trace.',
  async prepare(stage) {
    const rows = await writeLogRows(sizedCount(stage.sizes, 50_000));
    await importLogRows(stage, rows);
    const requests = rows.traces.map(callOf);
    return {
      settings: { lines: rows.rows },
      keys: [stage.server.key],
      phases: throughputAndLatency({ name: 'calls', tool: 'wrk', connections: 32, requests }),
    };
  },
};

/** A call as clients of the newest revision of MCP send it. */
export function callOf(query: string): LoopRequest {
  const { body, headers = {} } = modernRequest('tools/call', {
    name: 'search',
    arguments: { namespace: logNamespace, query },
  });
  const types = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  return {
    client: 0,
    method: 'POST',
    path: '/mcp',
    headers: { ...headers, ...types },
    body: JSON.stringify(body),
  };
}
