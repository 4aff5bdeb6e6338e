import { PlansError } from '../accounts/parse-plans.ts';
import { createLogger, describeError } from '../base/log.ts';
import { PriceError } from '../billing/check-prices.ts';
import { FolderInUse } from '../cluster/folder-lock.ts';
import { CannotJoin } from '../cluster/join.ts';
import { CannotListen } from '../front/door.ts';
import type { HttpEngine } from '../front/http.ts';
import { SecretsError } from '../identity/secrets.ts';
import type { ResidentThreads } from '../router/worker-pool.ts';
import { type Server, startServer } from '../server.ts';
import type { Settings } from '../settings.ts';
import { SettingsError } from '../settings-values.ts';
import { afterCrashFlag, exitCodes, type Farewell } from './farewell.ts';

/** What a server begins with. */
export interface Begun {
  readonly settings: Settings;
  readonly threads: ResidentThreads;
}

/** Runs the server until SIGTERM or SIGINT; answers the exit code. `begun` rejects where a setting is wrong. */
export async function runServer(args: readonly string[], begun: Promise<Begun>): Promise<number> {
  const logger = createLogger('front', 'info');
  process.on('unhandledRejection', (error) => {
    logger.error('a promise failed unhandled; the process ends', { error: describeError(error) });
    leave(failed);
  });
  // Before anybody can know that it listens: a signal that comes at once must drain it as well.
  const stopped = stopSignal();
  let server: Server;
  try {
    const engine = (process.env.TIDEBASE_TEST_HTTP_ENGINE ?? 'auto') as HttpEngine;
    const { settings, threads } = await begun;
    server = await startServer(settings, {
      threads,
      engine,
      onSealed,
      onLogDied: () => leave(failed),
      afterCrash: args.includes(afterCrashFlag),
    });
  } catch (error) {
    process.stderr.write(`tidebase cannot start: ${sentenceOf(error)}\n`);
    leave(isOperators(error) ? exitCodes.cannotStart : failed);
    // The process ends as soon as the supervisor has heard why.
    return new Promise(() => {});
  }
  if (server.metricsUrl !== null) process.stdout.write(`tidebase tells metrics on ${server.metricsUrl}\n`);
  process.stdout.write(`tidebase listening on ${server.url}\n`);
  await stopped;
  await server.stop();
  return exitCodes.done;
}

/** Another process took what this one had: nothing it still does could be acknowledged. */
function onSealed(why: 'replaced' | 'removed'): void {
  if (why === 'replaced') {
    process.stderr.write('tidebase: another process has taken over this data; this one ends\n');
    leave(exitCodes.cannotStart);
  } else {
    process.stderr.write(
      'tidebase: the other servers took this one for dead; it ends, and may be started again\n',
    );
    leave(failed);
  }
}

/** The supervisor starts a new process with a log of its own. */
const failed = 1;

/**
 * Native code under way can end the process by a signal while it exits, or hold the exit for ever: the supervisor hears the
 * code before, and kills what has not gone soon after.
 */
function leave(code: number): void {
  if (process.send === undefined) process.exit(code);
  process.send({ exitCode: code } satisfies Farewell, () => process.exit(code));
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once('SIGTERM', () => resolve());
    process.once('SIGINT', () => resolve());
  });
}

/**
 * Whether an operator has to act before another start can do better. Damaged data is theirs too: each start would seal
 * one more log and stop at the same object. From another thread an error comes by its name.
 */
function isOperators(error: unknown): boolean {
  if (error instanceof Error && error.name === 'DataError') return true;
  return [SettingsError, SecretsError, PlansError, PriceError, CannotListen, FolderInUse].some(
    (kind) => error instanceof kind,
  );
}

/** What the person who starts a server reads. A server that can't join yet is tried again, since the other one may have ended by then. */
function sentenceOf(error: unknown): string {
  const isForPeople = isOperators(error) || error instanceof CannotJoin;
  return isForPeople && error instanceof Error ? error.message : describeError(error);
}
