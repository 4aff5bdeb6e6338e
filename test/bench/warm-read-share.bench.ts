/**
 * What a warm read pays so that tenants share the server by owner: its owner and weight travel to the actor thread, and each thread
 * counts whose it was. It takes no turn, holds nothing and is charged by the count. The same message without them is measured in
 * alternation. Bar: 0.3 µs a read.
 * Run: node dist/test/bench/warm-read-share.bench.js
 */
import { stdout } from 'node:process';
import { type ActorCall, actorCallFromWire, actorCallToWire, noCaller } from '../../protocol/messages.ts';
import { packMessage, unpackMessage } from '../../src/base/msgpack.ts';

const rounds = 15;
const times = 200_000;
/** Calls of one message between the threads. */
const batch = 16;
const barMicroseconds = 0.3;

const call = {
  operation: 'getDocument',
  tenantId: 1_234,
  namespace: 'notes',
  argument: 'document-17',
  query: '',
  deadlineMs: 1_700_000_000_000,
  caller: { ...noCaller, requestId: 'af3f2fd5-4tk', owner: 98_765, weight: 4 },
} as unknown as ActorCall;

const { operation, tenantId, namespace, argument, query, deadlineMs, caller } = call;
/** The call as it would be without shares. */
const bareWire = () => [
  operation,
  tenantId,
  namespace,
  argument,
  query,
  deadlineMs,
  caller.namespaces,
  caller.createdBy,
  caller.personId,
  caller.querySeconds,
  caller.storageQuotaBytes,
  caller.readInflightBytes,
  caller.requestId,
];

const calls = { tenants: 0, nobody: 0, upkeep: 0 };
const answered = { tenants: 0, nobody: 0, upkeep: 0 };
let seen = 0;

function withShares(): void {
  const packed = packMessage(Array.from({ length: batch }, () => actorCallToWire(call)));
  for (const wire of unpackMessage(packed) as unknown[]) {
    const read = actorCallFromWire(wire);
    calls[read.caller.owner === noCaller.owner ? 'upkeep' : 'tenants']++;
    answered[read.tenantId > 0 ? 'tenants' : 'nobody']++;
    seen += read.tenantId;
  }
}

function without(): void {
  const packed = packMessage(Array.from({ length: batch }, bareWire));
  for (const wire of unpackMessage(packed) as unknown[]) seen += actorCallFromWire(wire).tenantId;
}

const microseconds = (work: () => void): number => {
  const began = performance.now();
  for (let i = 0; i < times; i += batch) work();
  return ((performance.now() - began) * 1_000) / times;
};
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

const found = { with: [] as number[], without: [] as number[] };
for (let round = 0; round < rounds; round++) {
  found.with.push(microseconds(withShares));
  found.without.push(microseconds(without));
}
const [full, bare] = [median(found.with.slice(3)), median(found.without.slice(3))];
const paid = full - bare;
stdout.write(
  `a warm read's message ${full.toFixed(3)} µs, without shares ${bare.toFixed(3)} µs: ` +
    `${paid.toFixed(3)} µs paid for fairness, bar ${barMicroseconds} µs (${seen > 0 ? calls.tenants : 0} reads)\n`,
);
process.exitCode = paid <= barMicroseconds ? 0 : 1;
