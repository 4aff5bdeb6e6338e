/**
 * `npm run measure -- view-change [--servers=10,50] [--idle=10000,1000000] [--active=200]`: what it costs when a server joins, leaves or is
 * killed, in the time of a simulated world with the production code of all servers in it. Each change is made twice: once while nobody asks
 * anything, and its objects are counted; once while every active namespace is written to five times a second, and its writers' waits are. All
 * active namespaces have a write that is not flushed when it begins. Ends with 1 where a change reads or lists anything of an idle namespace,
 * or costs more objects or bytes with many of them than with few.
 */
import { parseArgs } from 'node:util';
import { faultOf, type ViewChange, ViewChangeScene, windowMs } from './view-change-scene.ts';

const { values } = parseArgs({
  options: {
    servers: { type: 'string', default: '10,50' },
    idle: { type: 'string', default: '10000,1000000' },
    active: { type: 'string', default: '200' },
  },
});

const head = [
  'servers',
  'idle',
  'change',
  'moved',
  'GETs',
  'KB',
  'PUTs',
  'KB',
  'deletes',
  'lists',
  'of idle',
  'polls/s',
];
const heads = [...head, 'known ms', 'ready ms', 'wait p50', 'p99', 'longest', 'refused'];
const widths = [7, 9, 16, 5, 6, 6, 5, 5, 7, 5, 7, 7, 8, 8, 8, 6, 7, 7];

function line(cells: readonly (string | number)[]): string {
  const padded = cells.map((cell, at) => {
    const text = String(cell);
    return at === 2 ? text.padEnd(widths[at] ?? 0) : text.padStart(widths[at] ?? 0);
  });
  return `${padded.join(' ')}\n`;
}

function lineOf({
  servers,
  idle,
  change,
  cost,
  idleRead,
  moved,
  knownMs,
  readyMs,
  waitsMs,
  refused,
}: ViewChange): string {
  const kilobytes = (bytes: number) => Math.round(bytes / 1_000);
  const waited = (share: number) =>
    Math.round(waitsMs[Math.min(Math.floor(share * waitsMs.length), waitsMs.length - 1)] ?? 0);
  return line([
    ...[
      servers,
      idle,
      change,
      moved,
      cost.gets,
      kilobytes(cost.bytesRead),
      cost.puts,
      kilobytes(cost.bytesWritten),
    ],
    ...[cost.deletes, cost.lists, idleRead, Math.round(cost.polls / (windowMs / 1_000))],
    ...[Math.round(knownMs), Math.round(readyMs), waited(0.5), waited(0.99), waited(1), refused],
  ]);
}

const rows: ViewChange[] = [];
process.stdout.write(line(heads));
for (const servers of values.servers.split(',').map(Number))
  for (const idle of values.idle.split(',').map(Number)) {
    const scene = new ViewChangeScene(servers, idle);
    for (const row of await scene.scheduler.run(scene.run(Number(values.active)))) {
      rows.push(row);
      process.stdout.write(lineOf(row));
    }
  }
for (const row of rows) {
  const fault = faultOf(row, rows);
  if (fault === null) continue;
  process.stdout.write(`${row.servers} servers, ${row.idle} idle, ${row.change}: ${fault}\n`);
  process.exitCode = 1;
}
