import type { QueryContext } from '../../actors/search/query.ts';
import { runSearch } from '../../actors/search/run-search.ts';
import { TimeSlice } from '../../actors/search/time-slice.ts';
import { emptyReadReport } from '../../actors/storage/block-fetch.ts';
import type { Snapshot } from '../../actors/storage/snapshot.ts';
import { runMatch } from '../../actors/text/judge.ts';
import { parseSearchBody } from '../../protocol/search.ts';
import type { FakeClock } from './fake-clock.ts';
import { entryOf, type TestRow } from './segments.ts';

/** Queries over a snapshot that a test made, without an actor. */
export const identity = { tenantId: 1, name: 'n', namespaceId: 'ab'.repeat(16), createdAt: '' };

/** Document d1 of sequence 1, and so on; `n` of its meta is one of three numbers. */
export function row(sequence: number, text: string): TestRow {
  const id = `d${sequence}`;
  const meta = Buffer.from(JSON.stringify({ n: sequence % 3 }));
  return {
    id,
    sequence,
    writtenAt: 1.7e15 + sequence,
    entry: entryOf({ id, text: Buffer.from(text), meta, vector: null }),
  };
}

export function contextOf(snapshot: Snapshot, clock: FakeClock, deadlineMs = 1e9): QueryContext {
  return {
    identity,
    vector: null,
    snapshot,
    slice: new TimeSlice(clock, deadlineMs),
    report: emptyReadReport(),
    temperature: 'warm',
    cursorKey: Buffer.from('key'),
    match: async (task) => runMatch(task),
    monotonic: () => clock.monotonic(),
    beganAt: clock.monotonic(),
    readFailed: () => {},
  };
}

export const search = async (context: QueryContext, body: object) =>
  JSON.parse(await runSearch(context, parseSearchBody(body)));
