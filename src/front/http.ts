/** The door to HTTP: chooses the server, and says so where it is the slow one. */
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { listenNode } from './http-node.ts';
import type { HttpListener, HttpListenOptions } from './http-types.ts';
import { listenUws } from './http-uws.ts';
import { loadUws } from './http-uws-load.ts';

/** `auto` takes uWebSockets where it loads; `uws` insists on it. */
export type HttpEngine = 'auto' | 'uws' | 'node';

/** Upstream publishes by its repository and tag, not on the registry. */
const upstreamInstall = 'npm install uNetworking/uWebSockets.js#v20.57.0';

/** Rejects where the port is taken, or where `uws` is asked for and does not load. */
export async function listenHttp(
  options: HttpListenOptions & { readonly engine?: HttpEngine },
  logger: Logger,
  clock: Clock,
): Promise<HttpListener> {
  const { engine = 'auto' } = options;
  if (engine === 'node') return listenNode(options, logger, clock);
  const loaded = loadUws();
  if ('uws' in loaded) return listenUws(loaded, options, logger, clock);
  if (engine === 'uws') throw new Error(`uWebSockets does not load: ${loaded.reason}`);
  logger.info(
    'uWebSockets does not load here, so the slower node:http serves; to have the fast one, install it',
    {
      install: upstreamInstall,
      reason: loaded.reason,
    },
  );
  return listenNode(options, logger, clock);
}
