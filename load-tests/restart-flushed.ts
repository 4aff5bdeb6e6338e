import { Connections, type MeasuredServer, restartMeasured } from './measured-server.ts';
import { postUntilTaken } from './put-texts.ts';
import { type StartOptions, startServer } from './server.ts';
import { whenSegmentsRest } from './store-counts.ts';

/**
 * The state that "warm, in segments" means: stopping flushes what is in memory, each namespace is opened again, and what
 * that leaves to merge is merged.
 */
export async function restartFlushed(
  server: MeasuredServer,
  namespaces: readonly string[],
  options: Omit<StartOptions, 'folder'> = {},
  start = startServer,
): Promise<MeasuredServer> {
  await whenSegmentsRest(server.process);
  const restarted = await restartMeasured(server, options, start);
  const client = new Connections(restarted.process.url, restarted.key, 1);
  for (const namespace of namespaces)
    await postUntilTaken(client, `/v1/namespaces/${namespace}/warm`, Buffer.from('{}'));
  client.close();
  await whenSegmentsRest(restarted.process);
  return restarted;
}
