/**
 * What a request costs in reads and writes of the object store, and in rounds: calls that had to wait for each other.
 * Each call takes one step of a clock that nothing else moves, so that the steps which pass are the rounds.
 */
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { FakeClock } from './fake-clock.ts';
import { type Answer, InProcess, seededBytes, tenantId } from './in-process.ts';
import { randomText, seededRandom } from './segments.ts';

export interface Cost {
  readonly answer: Answer;
  readonly rounds: number;
  readonly gets: number;
  /** The kinds of the reads: `manifest`, `segment` and so on, in the order in which they began. */
  readonly kinds: readonly string[];
}

/** Less than the shortest deadline of a request takes for its rounds, far more than a group of the log waits. */
const stepMs = 1_000;

export async function costOf(
  process: InProcess,
  clock: FakeClock,
  ask: () => Promise<Answer>,
): Promise<Cost> {
  const { store } = process;
  await clock.advance(1);
  const before = store.calls.length;
  const plan = store.plan;
  const began = clock.monotonic();
  store.plan = () => ({ delayMs: stepMs });
  const answer = await clock.run(ask());
  store.plan = plan;
  const rounds = Math.floor((clock.monotonic() - began) / stepMs);
  const reads = store.calls.slice(before).filter(({ operation, key }) => isOfQuery(operation, key));
  return { answer, rounds, gets: reads.length, kinds: reads.map(({ key }) => kindOf(key)) };
}

/** Whether a read is the request's own: what the log and the lease do meanwhile is nobody's. */
function isOfQuery(operation: string, key: string): boolean {
  return operation === 'get' && (key.startsWith('ns/') || key.startsWith('tenant/'));
}

function kindOf(key: string): string {
  return key.split('/')[3] ?? key;
}

export const namespace = 'docs';
let starts = 12;

/** A process over a store of its own, with a tenant. */
export async function firstProcess(): Promise<{
  readonly process: InProcess;
  readonly clock: FakeClock;
  readonly store: MemoryObjectStore;
}> {
  const clock = new FakeClock();
  const store = new MemoryObjectStore();
  const process = await clock.run(InProcess.start({ store, clock, random: seededBytes(11) }));
  await clock.run(process.createTenant());
  return { process, clock, store };
}

/** The one after it, with nothing in memory but the tenant, whom authentication has asked for. */
export async function coldProcess(
  before: InProcess,
  clock: FakeClock,
  store: MemoryObjectStore,
): Promise<InProcess> {
  await clock.run(before.host.drain());
  // The log hears what was flushed, so that it is done with.
  await clock.settle();
  await clock.run(before.drain());
  const process = await clock.run(InProcess.start({ store, clock, random: seededBytes(starts++) }));
  await clock.run(process.get('no-such-namespace', 'x'));
  return process;
}

/** Documents `<prefix>0` and on, of about `bytes` each, that all hold the word "common". */
export function documentsOf(prefix: string, count: number, bytes: number): object[] {
  const random = seededRandom(prefix.length + count);
  return Array.from({ length: count }, (_, at) => {
    const text = randomText(random, Math.ceil(bytes / 6)).slice(0, bytes);
    return { id: `${prefix}${at}`, text: `common ${prefix}${at}.\n${text}`, meta: { n: at } };
  });
}

/** What the memtable holds goes into a segment of its own, or into the manifest's tail where it is small. */
export async function flush(process: InProcess, clock: FakeClock): Promise<void> {
  const resolved = await clock.run(process.components.directory.resolve(tenantId, namespace, null));
  await clock.run(process.host.flush(tenantId, namespace, resolved?.namespaceId ?? ''));
}
