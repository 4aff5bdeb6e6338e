/** Prometheus' own judge of metrics, alert rules and queries, where Debian's package `prometheus` is installed. */
import { spawnSync } from 'node:child_process';

/** A reason to skip, or false. */
export const promtoolMissing: string | false =
  spawnSync('promtool', ['--version']).error !== undefined &&
  "there is no promtool, which Debian's package prometheus has";

export function promtool(
  args: readonly string[],
  input = '',
): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}`.trim() };
}
