import { tools } from '../../../protocol/mcp-tools.ts';
import { counter, type Family } from '../../base/exposition.ts';

/**
 * What came to `/mcp`: messages by tool or method, and answers by class of status. Each tool call is also counted as the operation
 * that it is, with its time, in request-metrics.ts. Labels are names of ours alone: whatever else a client calls is `other`.
 */
export class McpMetrics {
  readonly #messages = new Map<string, { done: number; refused: number }>();
  readonly #answers = new Map<string, number>();

  constructor() {
    const methods = ['initialize', 'ping', 'server/discover', 'tools/list', other];
    for (const name of [...tools.keys(), ...methods]) this.#messages.set(name, { done: 0, refused: 0 });
  }

  /** A tool call, or a message of another method. */
  count(name: string, outcome: 'done' | 'refused'): void {
    const counts = this.#messages.get(name) ?? this.#messages.get(other);
    if (counts !== undefined) counts[outcome] += 1;
  }

  /** An HTTP answer; `gone`: nobody waited for it. */
  answered(status: number | 'gone'): void {
    const kind = status === 'gone' ? status : `${Math.floor(status / 100)}xx`;
    this.#answers.set(kind, (this.#answers.get(kind) ?? 0) + 1);
  }

  families(): Family[] {
    const messages = [...this.#messages].flatMap(([name, { done, refused }]) => [
      { labels: { name, outcome: 'done' }, value: done },
      { labels: { name, outcome: 'refused' }, value: refused },
    ]);
    const answers = [...this.#answers].map(([status, value]) => ({ labels: { status }, value }));
    return [
      counter(
        'tidebase_mcp_messages_total',
        'Messages of MCP by tool or method; refused: the call is an error',
        messages,
      ),
      counter('tidebase_mcp_answers_total', 'Answers of /mcp by class of status', answers),
    ];
  }
}

const other = 'other';
