/**
 * What a warm call costs that goes to another server, beside one that a thread of this server answers: two processes on loopback with
 * TLS, each with a router and a thread whose actor answers at once. CPU is that of all threads of both processes, without what is the same
 * for both: HTTP and the actor's own work, so the ratio for a client is smaller. What is wanted: at most 2.5 times the
 * CPU of a local call, and 1 ms more at the median for one call at a time.
 * Run: node dist/test/bench/forward.bench.js
 */
import { type ChildProcess, fork } from 'node:child_process';
import { argv, cpuUsage, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { isMainThread, MessageChannel, type MessagePort, Worker, workerData } from 'node:worker_threads';
import { limits } from '../../protocol/limits.ts';
import { systemClock } from '../../src/base/clock.ts';
import { PortChannel } from '../../src/base/port-channel.ts';
import { tlsTransport } from '../../src/peers/node-tls.ts';
import { callOf, done, logOf, membersOf, nameWhere, RoutedServer } from '../support/routed-servers.ts';

const self = fileURLToPath(import.meta.url);
const ids = ['a', 'b'] as const;
const answer = new Uint8Array(300).fill(97);
const rounds = 5;
const callsARound = 10_000;
const atOnce = 64;
const alone = 1_000;
const barRatio = 2.5;
const barMs = 1;

if (!isMainThread) act(workerData as MessagePort);
else if (argv[2] === 'owner') await own();
else await measure();

/** A thread whose actor answers at once. */
function act(port: MessagePort): void {
  new PortChannel(
    port,
    { call: (_, respond) => respond(done, answer), notice() {} },
    limits.messageInlineBytesMax,
  );
}

function startServer(id: string): RoutedServer {
  const transport = tlsTransport({ present: new Uint8Array(32).fill(1), previous: null }, systemClock);
  const server = new RoutedServer(id, membersOf(id, 1, ids), { clock: systemClock, transport });
  const { port1, port2 } = new MessageChannel();
  new Worker(self, { workerData: port2, transferList: [port2] });
  const channel = new PortChannel(port1, server.router.handler(), limits.messageInlineBytesMax);
  server.router.use([{ channel }]);
  return server;
}

async function own(): Promise<void> {
  // It goes with whoever measures.
  process.on('disconnect', () => process.exit(0));
  const server = startServer('b');
  const port = await server.peers.listen({ host: '127.0.0.1', port: 0 });
  process.on('message', () => process.send?.(cpuMs()));
  process.send?.(port);
}

function cpuMs(): number {
  const { user, system } = cpuUsage();
  return (user + system) / 1_000;
}

function told(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => child.once('message', (value) => resolve(Number(value))));
}

async function run(server: RoutedServer, namespace: string, calls: number, width: number): Promise<void> {
  const call = callOf('getDocument', namespace, { argument: 'document-17' });
  let left = calls;
  const one = async () => {
    while (left-- > 0) await server.router.call(call);
  };
  await Promise.all(Array.from({ length: width }, one));
}

function median(values: readonly number[]): number {
  return values.toSorted((x, y) => x - y)[values.length >> 1] ?? 0;
}

async function medianMs(server: RoutedServer, namespace: string): Promise<number> {
  const call = callOf('getDocument', namespace, { argument: 'document-17' });
  const took: number[] = [];
  for (let n = 0; n < alone; n++) {
    const began = performance.now();
    await server.router.call(call);
    took.push(performance.now() - began);
  }
  return median(took);
}

async function measure(): Promise<void> {
  const child = fork(self, ['owner']);
  const port = await told(child);
  const ask = async () => {
    const answered = told(child);
    child.send('cpu');
    return answered;
  };
  const server = startServer('a');
  server.peers.use([{ serverId: 'b', logId: logOf('b'), address: { host: '127.0.0.1', port } }]);
  const names = { here: nameWhere([ids, 'a']), there: nameWhere([ids, 'b']) };
  for (const name of Object.values(names)) await run(server, name, callsARound, atOnce);

  const found = { local: [] as number[], sender: [] as number[], owner: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    const [began, beganThere] = [cpuMs(), await ask()];
    await run(server, names.here, callsARound, atOnce);
    const [between, betweenThere] = [cpuMs(), await ask()];
    await run(server, names.there, callsARound, atOnce);
    const [ended, endedThere] = [cpuMs(), await ask()];
    const each = (ms: number) => (ms * 1_000) / callsARound;
    found.local.push(each(between - began + betweenThere - beganThere));
    found.sender.push(each(ended - between));
    found.owner.push(each(endedThere - betweenThere));
  }
  const ms = { local: await medianMs(server, names.here), forwarded: await medianMs(server, names.there) };
  const [local, sender, owner] = [median(found.local), median(found.sender), median(found.owner)];
  const ratio = (sender + owner) / local;
  stdout.write(
    `CPU a call, ${atOnce} at once: local ${local.toFixed(1)} µs; forwarded ${sender.toFixed(1)} µs + ${owner.toFixed(1)} µs at the owner, ` +
      `${ratio.toFixed(2)} times (bar ${barRatio})\n` +
      `one at a time, p50: local ${ms.local.toFixed(3)} ms, forwarded ${ms.forwarded.toFixed(3)} ms (bar ${barMs} ms more)\n`,
  );
  child.kill();
  process.exit(ratio <= barRatio && ms.forwarded - ms.local <= barMs ? 0 : 1);
}
