/**
 * Three levels. `error`: a developer must look. `info`: state changed. `debug`: the rest. There is no "warn".
 * One JSON object a line on standard error. Never document values, query literals or keys.
 */
export type LogLevel = 'error' | 'info' | 'debug';
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Logger {
  error(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

const ranks: Record<LogLevel, number> = { error: 0, info: 1, debug: 2 };

export function createLogger(
  thread: string,
  level: LogLevel,
  write: (line: string) => void = (line) => process.stderr.write(line),
): Logger {
  const at = (lineLevel: LogLevel) => (message: string, fields?: LogFields) => {
    if (ranks[lineLevel] > ranks[level]) return;
    write(
      `${JSON.stringify({ time: new Date().toISOString(), level: lineLevel, thread, message, ...fields })}\n`,
    );
  };
  return { error: at('error'), info: at('info'), debug: at('debug') };
}

export const silentLogger: Logger = { error() {}, info() {}, debug() {} };

/** One line that names an error and its causes, for a log field. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = `${error.name}: ${error.message}`;
  return error.cause === undefined ? own : `${own} <- ${describeError(error.cause)}`;
}
