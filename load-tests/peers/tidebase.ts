import { serverEnvironment } from '../../src/cli/supervise.ts';
import { machineFacts } from '../bench-report.ts';
import { Connections, startMeasured } from '../measured-server.ts';
import { postUntilTaken } from '../put-texts.ts';
import { restartFlushed } from '../restart-flushed.ts';
import { rowOf } from '../vector-set.ts';
import type { Peer, PeerAnswer, Question } from './peer.ts';
import { nearestWanted } from './peer-corpus.ts';

const namespace = 'rows';
const batchRows = 1_000;

export const tidebase: Peer = {
  name: 'Tidebase',
  about: 'HTTP, one client; in segments, warm',
  async open({ rows, vectors }) {
    const env = serverEnvironment;
    let server = await startMeasured({ env });
    const writer = new Connections(server.process.url, server.key, 1);
    for (let from = 0; from < rows.length; from += batchRows) {
      const docs = rows.slice(from, from + batchRows).map(({ id, text, ...meta }, at) => {
        return { id, text, meta, vector_b64: base64(rowOf(vectors, from + at)) };
      });
      const body = Buffer.from(JSON.stringify({ docs }));
      await postUntilTaken(writer, `/v1/namespaces/${namespace}/docs`, body);
    }
    writer.close();
    server = await restartFlushed(server, [namespace], { env });
    const client = new Connections(server.process.url, server.key, 1);
    const post = async (operation: string, asked: object) =>
      JSON.parse(
        await client.post(`/v1/namespaces/${namespace}/${operation}`, Buffer.from(JSON.stringify(asked))),
      );
    return {
      version: machineFacts().commit,
      kinds: ['rare', 'word', 'regex', 'filter', 'both', 'groups', 'nearest'],
      async ask({ kind, text, regex, columns, vector }: Question): Promise<PeerAnswer> {
        if (kind === 'groups') {
          const sql = 'SELECT host, COUNT(*) AS n FROM docs GROUP BY host';
          const { rows: found } = (await post('sql', { sql })) as {
            readonly rows: readonly (readonly unknown[])[];
          };
          return found.map(([host, n]) => `${host} ${n}`).sort();
        }
        if (vector !== undefined) {
          const asked = { vector_b64: base64(vector), limit: nearestWanted };
          const { hits } = (await post('search', asked)) as {
            readonly hits: readonly { readonly id: string }[];
          };
          return hits.map(({ id }) => id);
        }
        const asked = {
          ...(text === undefined ? {} : { q: text }),
          ...(regex === undefined ? {} : { q: regex, regex: true }),
          ...(columns === undefined ? {} : { filter: columns }),
          limit: 0,
        };
        return ((await post('count', asked)) as { readonly count: number }).count;
      },
      async close() {
        client.close();
        await server.process.stop();
      },
    };
  },
};

const base64 = ({ buffer, byteOffset, byteLength }: Float32Array) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');
