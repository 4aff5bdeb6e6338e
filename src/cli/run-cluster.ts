import { limits } from '../../protocol/limits.ts';
import { DataError } from '../base/assert.ts';
import { systemClock } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import { makeOnlyPrivate } from '../base/private-folder.ts';
import { systemRandom } from '../base/random.ts';
import { type DescribedCluster, describeCluster } from '../cluster/describe-cluster.ts';
import { openObjectStore } from '../object-store/open-object-store.ts';
import { type Env, SettingsError } from '../settings-values.ts';
import { readStoreSettings } from '../store-settings.ts';
import { counted, megabytes } from './amounts.ts';

const usage = `tidebase cluster

Prints the servers that share an object store: their states, addresses and logs, how many namespaces each owns, and how far it is behind: what its
log has that no manifest has yet, which whoever takes over from it has to read. Namespaces that were made since their tenant's last flush are not
counted, and none are where there are more than ${limits.describedTenantsMax} tenants. It reads the store alone, with the settings of a
server (TIDEBASE_DATA_DIR or TIDEBASE_OBJECTS_DIR, or TIDEBASE_OBJECT_STORE=s3 and S3_BUCKET), and asks no server.
`;

/** `tidebase cluster`: answers the exit code, 0 printed, 1 not read, 2 not understood. */
export async function runCluster(args: readonly string[], env: Env): Promise<number> {
  if (args.length > 0) {
    const isHelp = args.includes('--help') || args.includes('-h');
    (isHelp ? process.stdout : process.stderr).write(usage);
    return isHelp ? 0 : 2;
  }
  makeOnlyPrivate();
  try {
    const store = await openObjectStore(readStoreSettings(env), systemClock, systemRandom);
    try {
      process.stdout.write(tableOf(await describeCluster(store), systemClock.now()));
      return 0;
    } finally {
      await store.close();
    }
  } catch (error) {
    const isForPeople = error instanceof SettingsError || error instanceof DataError;
    process.stderr.write(`tidebase cluster: ${isForPeople ? error.message : describeError(error)}\n`);
    return 1;
  }
}

/** The cluster as a table for a person. */
export function tableOf({ version, placement, members, removed }: DescribedCluster, nowMs: number): string {
  if (version === 0) return 'no server has ever started on this object store\n';
  const rows = members.map(({ state, address, serverId, log, namespaces, renewedAtMs }) => [
    state,
    address,
    serverId,
    log.logId,
    namespaces === null ? 'not counted' : String(namespaces),
    renewedAtMs === null ? 'never' : `${(Math.max(0, nowMs - renewedAtMs) / 1_000).toFixed(1)} s ago`,
    `${counted(log.objects, 'object')}, ${megabytes(log.bytes)}`,
  ]);
  const head = ['STATE', 'ADDRESS', 'SERVER', 'LOG', 'NAMESPACES', 'LEASE RENEWED', 'LOG NOT IN MANIFESTS'];
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const lines = [head, ...rows].map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const gone = removed.map(
    ({ logId, objects, bytes }) => `  ${logId}  ${counted(objects, 'object')}, ${megabytes(bytes)}`,
  );
  return [
    `view ${version}, placement ${placement}, ${counted(members.length, 'server')}`,
    ...lines,
    ...(gone.length === 0 ? [] : ['logs of servers that have gone, not all in manifests yet:', ...gone]),
    '',
  ].join('\n');
}
