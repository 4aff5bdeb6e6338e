import { makeOnlyPrivate } from '../base/private-folder.ts';
import { beginThreads } from '../router/worker-pool.ts';
import { readSettings } from '../settings.ts';
import type { Begun } from './run-server.ts';

/**
 * Runs the server until SIGTERM or SIGINT; answers the exit code.
 *
 * Its threads begin first, so that each loads its code beside this one, which loads the server's: most of a start is loading.
 */
export async function beginServer(args: readonly string[]): Promise<number> {
  // Before anything is made, and before there is another thread.
  makeOnlyPrivate();
  const begun = begin(process.env);
  // `runServer` waits for the settings and says what is wrong with them; until it is loaded, nobody hears of the rejection.
  begun.catch(() => {});
  const { runServer } = await import('./run-server.ts');
  return runServer(args, begun);
}

/** Rejects with a `SettingsError`, before any thread has begun. */
async function begin(env: NodeJS.ProcessEnv): Promise<Begun> {
  const settings = readSettings(env);
  return { settings, threads: beginThreads(settings.actorThreads) };
}
